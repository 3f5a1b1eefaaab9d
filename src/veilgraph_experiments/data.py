"""The graphs of the experiments: benchmark folders, and clinical demos through their mappings; each saved once."""

from __future__ import annotations

from pathlib import Path

from veilgraph.errors import InputError
from veilgraph.load import fix, load, save, split
from veilgraph.load.datasets import data_folder, find, there
from veilgraph.mark import mark, mark_by_rules
from veilgraph_experiments.labelled import LABELLED, labelled

TABLES = {"mimic-iii": "mimic-iii-demo", "eicu": "eicu-demo/subset174", "synthea": "synthea-sample"}
STUDIED = {  # what the tables here take to be confidential, since the first of them; what is shipped to curators marks more
    "mimic-iii": (
        "hasDiagnosis hasProcedure hasPrescription hasRelatedGroup billedFor hasSpecimen grewOrganism testedAgainst "
        "hasInput hasOutput underwentProcedure procedureAt hasMeasurement hasLabTest hasDatedEvent hasNote hasReligion "
        "hasEthnicity hasMaritalStatus hasExpired"
    ),
    "eicu": "hasDiagnosis admittedFor assessedFor hasTreatment hasAllergy",
    "synthea": (
        "hasCondition hasCareplan hasAllergy hasDevice imagedAt imagedBy takes hasProcedure hasEncounter hasRace"
    ),
}
ABSENT = {
    "fb15k": "FB15k comes with Bordes et al. 2013 («Translating Embeddings for Modeling Multi-relational Data»)",
    "yago3-10": "YAGO3-10 comes with Dettmers et al. 2018 («Convolutional 2D Knowledge Graph Embeddings»)",
}

NEW = "fb15k-237-new-"  # and a seed: a tenth of the entities each for valid and test


def prepare(name: str, folder: Path) -> Path:
    """A saved graph folder with train, valid and test, made if it is not there."""
    target = folder / name
    if target.is_dir():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    if name == "hospital":
        graph = split(load("builtin:hospital", patients=500), valid=0.05, test=0.1)
    elif name == "movielens-100k":
        graph = split(load(f"movielens:{there(name)}"), valid=0.1, test=0.1, mode="latest")
        graph = graph.with_marks(mark(graph, relations=["gender", "age_group", "occupation"]))
    elif name in TABLES:
        source = there(TABLES[name])
        graph, prefix = load(f"tables:{source}", mapping=name), name.removesuffix("-iii")
        rules = [{"relation": f"urn:{prefix}:{relation}"} for relation in STUDIED[name].split()]
        graph = graph.with_marks(mark_by_rules(graph, {"rules": rules, "absent": "allowed"}))
        graph = split(graph, valid=0.1, test=0.1)
    elif name.startswith(NEW):
        graph = split(load(find("fb15k-237")), mode="inductive", seed=int(name.removeprefix(NEW)))
    elif name in LABELLED:
        return labelled(name, folder)
    else:
        if name in ABSENT and not (data_folder() / name).is_dir():
            raise InputError(
                f"{ABSENT[name]} and is not there: put train.txt, valid.txt and test.txt into {data_folder() / name}."
            )
        graph = fix(load(find(name)))
    save(graph, target)
    return target

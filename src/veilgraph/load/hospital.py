"""A made-up hospital whose facts hang together, so that links can really be predicted.

Every disease has a specialty, typical symptoms, findings and drugs. A patient has a hidden leaning to one specialty
and one or more diseases; ward, doctor, symptoms, findings and drugs follow from those with some chance, citizenship and
insurer go together, and insurers prefer some of the equivalent drugs. Everything is drawn in arrays: millions of
statements take seconds. About 13 statements per patient. No real person, hospital or drug is meant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilgraph.errors import InputError
from veilgraph.rng import Streams

Text = NDArray[np.object_]
Ints = NDArray[np.int64]

SITES = {  # specialty → (where, where, where)
    "cardiology": ("myocardial", "valvular", "coronary"),
    "pulmonology": ("bronchial", "pleural", "alveolar"),
    "neurology": ("cerebral", "spinal", "vestibular"),
    "gastroenterology": ("gastric", "hepatic", "intestinal"),
    "nephrology": ("renal", "tubular", "glomerular"),
    "endocrinology": ("thyroid", "adrenal", "pituitary"),
    "oncology": ("lymphatic", "glandular", "osseous"),
    "infectiology": ("systemic", "mucosal", "parasitic"),
    "rheumatology": ("articular", "synovial", "muscular"),
    "dermatology": ("cutaneous", "follicular", "epidermal"),
    "psychiatry": ("affective", "anxious", "cognitive"),
    "haematology": ("marrow", "platelet", "erythrocyte"),
}
CONDITIONS = ("inflammation", "insufficiency", "infection", "degeneration", "dysregulation")
COURSES = ("acute", "chronic")
SYMPTOMS = [
    "fever",
    "cough",
    "fatigue",
    "nausea",
    "headache",
    "dizziness",
    "dyspnoea",
    "oedema",
    "palpitations",
    "chest_pain",
    "abdominal_pain",
    "back_pain",
    "joint_pain",
    "rash",
    "itching",
    "bleeding",
    "bruising",
    "weight_loss",
    "weight_gain",
    "night_sweats",
    "insomnia",
    "anxiety",
    "low_mood",
    "confusion",
    "tremor",
    "numbness",
    "weakness",
    "blurred_vision",
    "tinnitus",
    "dry_mouth",
    "thirst",
    "constipation",
    "diarrhoea",
    "vomiting",
    "jaundice",
    "hair_loss",
    "swollen_nodes",
    "stiffness",
    "cramps",
    "pallor",
    "hoarseness",
    "wheezing",
]
FINDINGS = [
    "raised_crp",
    "raised_troponin",
    "low_haemoglobin",
    "high_glucose",
    "low_glucose",
    "raised_creatinine",
    "raised_bilirubin",
    "high_tsh",
    "low_tsh",
    "low_platelets",
    "high_leukocytes",
    "low_leukocytes",
    "proteinuria",
    "haematuria",
    "low_sodium",
    "high_potassium",
    "low_oxygen",
    "high_lactate",
    "raised_ferritin",
    "low_ferritin",
    "raised_uric_acid",
    "positive_culture",
    "raised_d_dimer",
    "low_albumin",
    "raised_cortisol",
    "low_vitamin_d",
    "raised_lipase",
    "abnormal_ecg",
    "abnormal_eeg",
    "antibodies",
]
COUNTRIES = [
    "Norland",
    "Suden",
    "Ostria",
    "Westmark",
    "Valdora",
    "Kestria",
    "Almania",
    "Brevia",
    "Cordova",
    "Delmar",
    "Estoria",
    "Fennmark",
]
INSURERS = ["Aegis", "Bulwark", "Canopy", "Domus", "Evergreen", "Fidelia", "Garrison", "Harbour"]
SYLLABLES = ["ba", "ce", "do", "fi", "ga", "lo", "mi", "ne", "pra", "ru", "sa", "ti", "vo", "xa", "zo"]


@dataclass(frozen=True)
class Hospital:
    """Three columns of names, and a text for each thing that is not a person."""

    columns: tuple[Text, Text, Text]
    descriptions: dict[str, str]


def generate(patients: int, seed: int = 0) -> Hospital:
    """A hospital with so many patients."""
    if not 10 <= patients <= 20_000_000:
        raise InputError(f"the hospital needs between 10 and 20,000,000 patients, found {patients}")
    rng = Streams(seed).numpy("generate")
    world = _World.draw(rng, patients)
    facts = _Facts()
    _medicine(world, facts)
    _staff(world, facts)
    _admissions(world, facts, rng, patients)
    return Hospital(facts.columns(), world.texts())


class _Facts:
    """Statements collected column by column, each once."""

    def __init__(self) -> None:
        self.parts: list[tuple[Text, str, Text]] = []

    def add(self, heads: Text, relation: str, tails: Text) -> None:
        self.parts.append((heads, relation, tails))

    def add_pairs(self, heads: Text, relation: str, tails: Text, i: Ints, j: Ints) -> None:
        """Statements heads[i] relation tails[j] without repetitions."""
        code = np.unique(i.astype(np.int64) * len(tails) + j)
        self.add(heads[code // len(tails)], relation, tails[code % len(tails)])

    def columns(self) -> tuple[Text, Text, Text]:
        return (
            np.concatenate([h for h, _, _ in self.parts]),
            np.concatenate([np.full(len(h), r, object) for h, r, _ in self.parts]),
            np.concatenate([t for _, _, t in self.parts]),
        )


@dataclass
class _World:
    """The hospital's things and how they hang together."""

    specialty: Text
    disease: Text
    disease_specialty: Ints
    symptom: Text
    disease_symptom: Ints  # [diseases, 4]
    finding: Text
    disease_finding: Ints  # [diseases, 2]
    drug: Text
    disease_drug: Ints  # [diseases, 3]
    ward: Text
    ward_specialty: Ints
    doctor: Text
    doctor_ward: Ints
    country: Text
    insurer: Text

    @classmethod
    def draw(cls, rng: np.random.Generator, patients: int) -> _World:
        specialties = list(SITES)
        names = [
            (f"{course}_{site}_{condition}", s)
            for condition in CONDITIONS
            for course in COURSES
            for place in range(3)
            for s, site in enumerate(sites[place] for sites in SITES.values())
        ]
        diseases = names[: min(len(names), max(3 * len(SITES), patients // 10))]
        disease_specialty = np.array([s for _, s in diseases])
        # Each specialty has its own symptoms and findings; a disease takes most from there, some from everywhere.
        symptoms_of = np.stack([rng.choice(len(SYMPTOMS), 8, replace=False) for _ in specialties])
        findings_of = np.stack([rng.choice(len(FINDINGS), 5, replace=False) for _ in specialties])
        n = len(diseases)
        own = np.argsort(rng.random((n, 8)), 1)[:, :3]
        symptom = np.column_stack(
            [np.take_along_axis(symptoms_of[disease_specialty], own, 1), rng.integers(len(SYMPTOMS), size=n)]
        )
        finding = np.take_along_axis(
            findings_of[disease_specialty], np.argsort(rng.random((n, 5)), 1)[:, :2], 1
        )
        drugs_each = 8
        drug = [
            f"{SYLLABLES[i % 15]}{SYLLABLES[(i // 15 + 3 * i) % 15]}{SYLLABLES[(7 * i + i // 9) % 15]}{s[:3]}in"
            for s in specialties
            for i in range(drugs_each)
        ]
        disease_drug = (
            disease_specialty[:, None] * drugs_each + np.argsort(rng.random((n, drugs_each)), 1)[:, :3]
        )
        wards = max(len(specialties), min(60, patients // 150))
        ward_specialty = np.arange(wards) % len(specialties)
        doctors = max(wards, patients // 40)
        return cls(
            _things("specialty", specialties),
            _things("disease", [name for name, _ in diseases]),
            disease_specialty,
            _things("symptom", SYMPTOMS),
            symptom,
            _things("finding", FINDINGS),
            finding,
            _things("drug", drug),
            disease_drug,
            _things(
                "ward",
                [f"{specialties[s]}_{i // len(specialties) + 1}" for i, s in enumerate(ward_specialty)],
            ),
            ward_specialty,
            _numbered("doctor", doctors),
            np.arange(doctors) % wards,
            _things("country", COUNTRIES),
            _things("insurer", INSURERS),
        )

    def texts(self) -> dict[str, str]:
        """A sentence or two about each thing that is not a person."""
        out = {}
        for i, name in enumerate(self.disease):
            symptoms = ", ".join(_plain(self.symptom[s]) for s in self.disease_symptom[i][:3])
            drugs = " or ".join(_plain(self.drug[d]) for d in self.disease_drug[i][:2])
            where = _plain(self.specialty[self.disease_specialty[i]])
            out[name] = (
                f"{_plain(name).capitalize()} is a disease seen in {where}. It shows as {symptoms} "
                f"and is usually treated with {drugs}."
            )
        for i, name in enumerate(self.drug):
            where = _plain(self.specialty[i // 8])
            used = [_plain(self.disease[d]) for d in np.flatnonzero((self.disease_drug == i).any(1))[:3]]
            out[name] = (
                f"{_plain(name).capitalize()} is a drug used in {where}, for example against {', '.join(used)}."
            )
        for i, name in enumerate(self.ward):
            out[name] = f"A ward for {_plain(self.specialty[self.ward_specialty[i]])}."
        for kind, things in (
            ("A medical specialty", self.specialty),
            ("A symptom a patient may report", self.symptom),
            ("A laboratory or examination finding", self.finding),
            ("A country of citizenship", self.country),
            ("A health insurer", self.insurer),
        ):
            out.update({name: f"{kind}: {_plain(name)}." for name in things})
        return out


def _medicine(w: _World, facts: _Facts) -> None:
    rows = np.arange(len(w.disease))
    facts.add(w.disease, "belongsTo", w.specialty[w.disease_specialty])
    for relation, things, table in (
        ("hasTypicalSymptom", w.symptom, w.disease_symptom),
        ("showsIn", w.finding, w.disease_finding),
        ("treatedWith", w.drug, w.disease_drug),
    ):
        facts.add_pairs(w.disease, relation, things, np.repeat(rows, table.shape[1]), table.ravel())


def _staff(w: _World, facts: _Facts) -> None:
    facts.add(w.ward, "wardOf", w.specialty[w.ward_specialty])
    facts.add(w.doctor, "worksIn", w.ward[w.doctor_ward])
    facts.add(w.doctor, "specialisesIn", w.specialty[w.ward_specialty[w.doctor_ward]])


def _admissions(w: _World, facts: _Facts, rng: np.random.Generator, patients: int) -> None:
    """What is known about each patient."""
    patient = _numbered("patient", patients)
    everyone = np.arange(patients)
    leaning = rng.integers(len(w.specialty), size=patients)
    # Diseases: the first from the own specialty, a second one for half of the patients, mostly from there too.
    by_specialty = [np.flatnonzero(w.disease_specialty == s) for s in range(len(w.specialty))]
    first = _ragged_choice(rng, by_specialty, leaning)
    stay = rng.random(patients) < 0.7
    second = np.where(
        stay, _ragged_choice(rng, by_specialty, leaning), rng.integers(len(w.disease), size=patients)
    )
    two = rng.random(patients) < 0.5
    who, what = np.concatenate([everyone, everyone[two]]), np.concatenate([first, second[two]])
    facts.add_pairs(patient, "hasDiagnosis", w.disease, who, what)

    for relation, things, table, chance in (
        ("hasSymptom", w.symptom, w.disease_symptom, 0.6),
        ("hasFinding", w.finding, w.disease_finding, 0.6),
    ):
        keep = rng.random((len(who), table.shape[1])) < chance
        i, j = np.nonzero(keep)
        facts.add_pairs(patient, relation, things, who[i], table[what[i], j])

    country = rng.choice(len(COUNTRIES), patients, p=_zipf(len(COUNTRIES)))
    usual = (country * 3) % len(INSURERS)
    insurer = np.where(rng.random(patients) < 0.7, usual, rng.integers(len(INSURERS), size=patients))
    facts.add(patient, "citizenOf", w.country[country])
    facts.add(patient, "insuredBy", w.insurer[insurer])

    # Of the three equivalent drugs the insurer prefers one; the others are what the patient may benefit from.
    choice = np.where(rng.random(len(who)) < 0.75, (insurer[who] + what) % 3, rng.integers(3, size=len(who)))
    facts.add_pairs(patient, "takes", w.drug, who, w.disease_drug[what, choice])
    facts.add_pairs(patient, "mayBenefitFrom", w.drug, who, w.disease_drug[what, (choice + 1) % 3])

    wards = [np.flatnonzero(w.ward_specialty == s) for s in range(len(w.specialty))]
    ward = _ragged_choice(rng, wards, w.disease_specialty[first])
    facts.add(patient, "admittedTo", w.ward[ward])
    doctors = [np.flatnonzero(w.doctor_ward == i) for i in range(len(w.ward))]
    facts.add(patient, "treatedBy", w.doctor[_ragged_choice(rng, doctors, ward)])


def _ragged_choice(rng: np.random.Generator, groups: list[Ints], which: Ints) -> Ints:
    """One member of ``groups[which[i]]`` for each i; lower members are likelier."""
    size = np.array([len(g) for g in groups])
    start = np.concatenate([[0], np.cumsum(size)[:-1]])
    place = (rng.random(len(which)) ** 1.5 * size[which]).astype(np.int64)
    return np.asarray(np.concatenate(groups)[start[which] + place])


def _zipf(n: int) -> NDArray[np.float64]:
    weight = 1 / np.arange(1, n + 1)
    return np.asarray(weight / weight.sum())


def _things(kind: str, names: list[str] | tuple[str, ...]) -> Text:
    return np.array([f"{kind}/{name}" for name in names], dtype=object)


def _numbered(kind: str, count: int) -> Text:
    return np.array([f"{kind}/{i}" for i in range(count)], dtype=object)


def _plain(name: str) -> str:
    return name.split("/", 1)[1].replace("_", " ")

"""A run's vectors in other tools' formats, one small file each; a new file is found by itself.

parquet   entities.parquet, relations.parquet: name + a list of numbers      npy        .npy matrices + names as text
tsv       name, then numbers, tab-separated                                  word2vec   the text format gensim reads
pykeen    a PyKEEN model's weights (safetensors) + how to build it; scores are the same
          (the first four with counts.* beside, where noisy counts are part of the run's scores: counts.py)
run       the run folder itself without what is for the curator alone: to publish, with its ledger and certificate
"""

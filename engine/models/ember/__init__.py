"""Ember, the embedded voice model: a small codec LM over text bytes, words and codes of one codebook."""

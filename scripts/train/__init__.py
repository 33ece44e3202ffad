"""Building the embedded voice: sentences, teacher audio, codec, language model."""

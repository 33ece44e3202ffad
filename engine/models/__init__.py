"""The models: a folder each, found by `engine.models.registry`."""

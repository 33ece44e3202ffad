"""Transports: they move bytes and hold no logic."""

"""Settings of all tests."""

from hypothesis import settings

# A loaded machine is no reason to fail: timing belongs in the benches.
settings.register_profile("voxwire", deadline=None)
settings.load_profile("voxwire")

"""Audio packaging: model samples in, ready packets or container bytes out.

Everything here is synchronous and CPU-bound, with no clock and no event loop: call it from a worker thread.
libopus, LAME, AAC and FLAC encode with the GIL released; the resampler and G.711 hold it for some tens of
microseconds a frame.
"""

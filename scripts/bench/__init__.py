"""Load benches of the running server: time to first packet, underruns, throughput against bare references."""

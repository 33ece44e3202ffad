"""Quality measurement of the embedded voice: intelligibility, naturalness, similarity, timing, speed.

Entry points, each with `--help`:

    python -m scripts.eval.codec_eval    reconstruction through the codec, against the teacher's audio
    python -m scripts.eval.lm_eval       speech of the language model, through vLLM and the codec
    python -m scripts.eval.lm_search     the same over a grid of sampling settings
    python -m scripts.eval.report        one table, JSON and plot from the results of the above
"""

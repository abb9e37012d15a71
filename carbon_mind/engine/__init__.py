"""Engines: llama.cpp in process (`llama`), and a deterministic one without a model (`fake`)."""

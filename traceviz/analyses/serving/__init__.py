"""Phases of an engine that serves a language model: prefill and decode."""

"""What an engine that serves a language model does: prefill and decode."""

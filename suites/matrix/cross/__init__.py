"""Proofs that go across engines: what one writes, alters, locks or drops, the others see as it is."""

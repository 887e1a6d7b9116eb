# SPDX-License-Identifier: MIT
"""Helpers, at the path where scripts look for them."""

from tenon.distributions.distribution import broadcast_all, clamp_probs, logits_to_probs, probs_to_logits

__all__ = ["broadcast_all", "clamp_probs", "logits_to_probs", "probs_to_logits"]

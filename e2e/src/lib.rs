//! Proof in the real agents: a fake model and a runner for shipped clients.

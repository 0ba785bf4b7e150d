"""Numbers of matrixdp, and proofs about them in ball arithmetic: `make proofs` (docs/proofs.md)."""

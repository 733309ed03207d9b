//! Defaults, file and flags into one checked value; `modes.yaml`.

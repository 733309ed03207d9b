//! Recaps and notes into the memory files, as one commit.

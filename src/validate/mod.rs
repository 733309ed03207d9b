//! What is wrong with a memory folder: files and facts in, diagnostics out.

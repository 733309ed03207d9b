//! Transcripts of agents, read into sessions.

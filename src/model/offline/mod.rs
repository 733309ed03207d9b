//! Rules that copy and never invent: the back end that needs nothing.
//!
//! Both stages are plain functions of their input, so that the same sessions
//! give the same bytes on every machine, without a network or a key.

pub(crate) mod consolidate;
pub(crate) mod extract;
pub(crate) mod raw_memories;
pub(crate) mod shape;
pub(crate) mod staging;

use crate::model::{
    ConsolidationRequest, ExtractionRequest, Model, ModelError, Reply, WorkerReport,
};

/// The back end `offline`.
pub(crate) struct Offline;

impl Model for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn is_free(&self) -> bool {
        true
    }

    fn applies_notes(&self) -> bool {
        true
    }

    fn extract(&self, request: &ExtractionRequest<'_>) -> Result<Reply, ModelError> {
        Ok(extract::extract(request))
    }

    fn consolidate(&self, request: &ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError> {
        staging::work(request)
    }
}

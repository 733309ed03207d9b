//! From sessions to recaps: the first stage.
//!
//! [`select`] decides which sessions, [`input`] what a model is shown of one,
//! [`reply`] what its answer says, [`grounding`] whose words its preferences are;
//! [`run`] does it.

pub(crate) mod grounding;
pub(crate) mod input;
pub(crate) mod reply;
pub(crate) mod run;
pub(crate) mod select;

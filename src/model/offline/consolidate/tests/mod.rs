//! Each case is text in, text out; `story` is the only code that knows the API.

mod handbook;
mod hostile;
mod notes;
mod properties;
mod story;
mod summary;
mod wishes;
mod withheld;

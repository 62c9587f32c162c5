//! What is said to people and machines: diagnostics with source excerpts, reports as text and JSON.

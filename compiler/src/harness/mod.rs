//! Runs programs and compares: the definition, the program after each pass, and the kernels on a device.
//!
//! Engines know nothing of stages and stages nothing of engines: [`engine`] says what an engine is and what is reported,
//! [`interpreter`] and [`opencl`] are two, [`stages`] runs a chain of programs on the same inputs ([`inputs`], packed by
//! [`layout`]) and [`compare`] holds the results against each other.

pub mod compare;
pub mod engine;
pub mod inputs;
pub mod interpreter;
pub mod layout;
pub mod opencl;
pub mod stages;

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;

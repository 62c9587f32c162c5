//! Runs programs and compares the results: the definition, the program after each pass, and the kernels on a device.
//!
//! | module | content |
//! |---|---|
//! | [`engine`] | what an engine is, and the outcome of a run |
//! | [`interpreter`], [`opencl`] | the two engines |
//! | [`stages`] | runs a chain of programs on the same inputs and names the first stage that differs |
//! | [`inputs`], [`arguments`] | chooses the integers of a call, and makes its arguments |
//! | [`layout`] | packs the arguments into the layout of a stage |
//! | [`room`] | whether the memory of the machine is enough |
//! | [`timing`] | times kernels on a device |
//! | [`compare`] | compares two results |
//!
//! Engines know nothing of stages, and stages nothing of particular engines.

pub mod arguments;
pub mod compare;
mod digits;
pub mod engine;
pub mod inputs;
pub mod interpreter;
pub mod layout;
mod moved;
pub mod opencl;
mod places;
pub mod room;
pub mod stages;
pub mod timing;

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;

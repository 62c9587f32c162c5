//! Every OpenCL kernel that these tests generate is built by a real OpenCL compiler and run.

mod kernels;
mod operators;
mod second_target;
mod spread;
mod support;

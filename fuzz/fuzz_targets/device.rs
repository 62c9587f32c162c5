//! Generated kernels on every OpenCL device present against the interpreter.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("device", data));

//! A program on one thread against several, and with the iterations of its loops that are not serial in other orders: the same
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("order", data));

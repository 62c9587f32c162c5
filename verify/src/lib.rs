//! tilewright-verify

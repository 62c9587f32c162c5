//! Tilewright

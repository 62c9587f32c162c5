//! XLA's element types.

use std::fmt;

/// The type of an element of an XLA array (`PrimitiveType` in `xla_data.proto`). Token, tuple and opaque types are
/// not element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants are their names in XLA's text, which the table gives")]
pub enum ElementType {
    Pred,
    S1,
    S2,
    S4,
    S8,
    S16,
    S32,
    S64,
    U1,
    U2,
    U4,
    U8,
    U16,
    U32,
    U64,
    F4E2M1Fn,
    F6E2M3Fn,
    F6E3M2Fn,
    F8E3M4,
    F8E4M3,
    F8E4M3Fn,
    F8E4M3B11Fnuz,
    F8E4M3Fnuz,
    F8E5M2,
    F8E5M2Fnuz,
    F8E8M0Fnu,
    F16,
    Bf16,
    F32,
    F64,
    C64,
    C128,
}

impl ElementType {
    /// All element types, in the order of the enum.
    pub const ALL: [Self; 32] = [
        Self::Pred,
        Self::S1,
        Self::S2,
        Self::S4,
        Self::S8,
        Self::S16,
        Self::S32,
        Self::S64,
        Self::U1,
        Self::U2,
        Self::U4,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F4E2M1Fn,
        Self::F6E2M3Fn,
        Self::F6E3M2Fn,
        Self::F8E3M4,
        Self::F8E4M3,
        Self::F8E4M3Fn,
        Self::F8E4M3B11Fnuz,
        Self::F8E4M3Fnuz,
        Self::F8E5M2,
        Self::F8E5M2Fnuz,
        Self::F8E8M0Fnu,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
    ];

    /// Returns the name in XLA's text and the number of bits of a value. A table.
    const fn info(self) -> (&'static str, u64) {
        match self {
            Self::Pred => ("pred", 1),
            Self::S1 => ("s1", 1),
            Self::S2 => ("s2", 2),
            Self::S4 => ("s4", 4),
            Self::S8 => ("s8", 8),
            Self::S16 => ("s16", 16),
            Self::S32 => ("s32", 32),
            Self::S64 => ("s64", 64),
            Self::U1 => ("u1", 1),
            Self::U2 => ("u2", 2),
            Self::U4 => ("u4", 4),
            Self::U8 => ("u8", 8),
            Self::U16 => ("u16", 16),
            Self::U32 => ("u32", 32),
            Self::U64 => ("u64", 64),
            Self::F4E2M1Fn => ("f4e2m1fn", 4),
            Self::F6E2M3Fn => ("f6e2m3fn", 6),
            Self::F6E3M2Fn => ("f6e3m2fn", 6),
            Self::F8E3M4 => ("f8e3m4", 8),
            Self::F8E4M3 => ("f8e4m3", 8),
            Self::F8E4M3Fn => ("f8e4m3fn", 8),
            Self::F8E4M3B11Fnuz => ("f8e4m3b11fnuz", 8),
            Self::F8E4M3Fnuz => ("f8e4m3fnuz", 8),
            Self::F8E5M2 => ("f8e5m2", 8),
            Self::F8E5M2Fnuz => ("f8e5m2fnuz", 8),
            Self::F8E8M0Fnu => ("f8e8m0fnu", 8),
            Self::F16 => ("f16", 16),
            Self::Bf16 => ("bf16", 16),
            Self::F32 => ("f32", 32),
            Self::F64 => ("f64", 64),
            Self::C64 => ("c64", 64),
            Self::C128 => ("c128", 128),
        }
    }

    /// Returns the type with this name in XLA's text, in lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Returns the name in XLA's text.
    pub const fn name(self) -> &'static str {
        self.info().0
    }

    /// Returns the number of bits that a value needs.
    pub const fn value_bits(self) -> u64 {
        self.info().1
    }

    /// Returns the number of bits that an element occupies in memory if the layout does not state it: whole bytes.
    pub const fn storage_bits(self) -> u64 {
        self.value_bits().next_multiple_of(8)
    }

    /// Returns whether the type is an unsigned integer. XLA requires one for the indices and pointers of a sparse array.
    pub fn is_unsigned(self) -> bool {
        match self {
            Self::U1 | Self::U2 | Self::U4 | Self::U8 | Self::U16 | Self::U32 | Self::U64 => true,
            Self::Pred | Self::S1 | Self::S2 | Self::S4 | Self::S8 | Self::S16 | Self::S32 | Self::S64 => false,
            Self::F4E2M1Fn | Self::F6E2M3Fn | Self::F6E3M2Fn => false,
            Self::F8E3M4 | Self::F8E4M3 | Self::F8E4M3Fn | Self::F8E4M3B11Fnuz | Self::F8E4M3Fnuz => false,
            Self::F8E5M2 | Self::F8E5M2Fnuz | Self::F8E8M0Fnu => false,
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 | Self::C64 | Self::C128 => false,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_its_own_type() {
        for ty in ElementType::ALL {
            assert_eq!(ElementType::from_name(ty.name()), Some(ty));
        }
        assert_eq!(ElementType::from_name("f33"), None);
    }

    #[test]
    fn without_element_bits_an_element_takes_whole_bytes() {
        let bits = |name| ElementType::from_name(name).map(|ty| (ty.value_bits(), ty.storage_bits()));
        assert_eq!(bits("pred"), Some((1, 8)));
        assert_eq!(bits("s4"), Some((4, 8)));
        assert_eq!(bits("f6e2m3fn"), Some((6, 8)));
        assert_eq!(bits("bf16"), Some((16, 16)));
        assert_eq!(bits("c128"), Some((128, 128)));
    }
}

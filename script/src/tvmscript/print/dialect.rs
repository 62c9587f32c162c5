//! The notations that programs are printed in.
//!
//! | | canonical | 0.16 | 0.27 |
//! |---|---|---|---|
//! | module | functions | `@I.ir_module class Module:` | the same |
//! | import | `tir as T` | `tir as T` | `tirx as T` |
//! | function | `@T.prim_func` | `@T.prim_func` | `@T.prim_func(s_tir=True)` |
//! | block | `T.sblock`, `T.sblock_attr` | `T.block`, `T.block_attr` | `T.sblock`, `T.sblock_attr` |
//! | memory of a block | `T.alloc_buffer` | `T.alloc_buffer` | `T.sblock_alloc_buffer` |
//! | other memory | `T.alloc_buffer` | `T.decl_buffer` without `data` | `T.alloc_buffer` |
//! | binding | `x: T.int32 = v` | `x: T.int32 = v` | `x: T.let[T.int32] = v` |
//! | scope of a texture | `texture` | `global.texture` | `global.texture` |
//!
//! Both releases read what is printed for them. What a release cannot express is an error: requests of this compiler, such as
//! `layout_transform_map`, and axis separators in 0.27, which has none.

use std::fmt;
use std::str::FromStr;

use tilewright_ir::{DataType, Scope};

/// A notation of TVMScript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The notation that this project prints: every program can be written in it.
    #[default]
    Canonical,
    /// What release 0.16 of TVM reads.
    Tvm0_16,
    /// What release 0.27 of TVM reads.
    Tvm0_27,
}

impl Dialect {
    /// All notations.
    pub const ALL: [Self; 3] = [Self::Canonical, Self::Tvm0_16, Self::Tvm0_27];

    /// Returns the name: `canonical`, or the number of a release.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Canonical => "canonical",
            Self::Tvm0_16 => "0.16",
            Self::Tvm0_27 => "0.27",
        }
    }

    /// Returns whether the text is for TVM.
    pub(super) fn is_tvm(self) -> bool {
        match self {
            Self::Canonical => false,
            Self::Tvm0_16 | Self::Tvm0_27 => true,
        }
    }

    /// Returns the module that is imported as `T`.
    pub(super) fn module(self) -> &'static str {
        match self {
            Self::Canonical | Self::Tvm0_16 => "tir",
            Self::Tvm0_27 => "tirx",
        }
    }

    /// Returns the decorator of a function.
    pub(super) fn decorator(self) -> &'static str {
        match self {
            Self::Canonical | Self::Tvm0_16 => "@T.prim_func",
            // Without it, release 0.27 gives each buffer a layout of its own, and knows no blocks.
            Self::Tvm0_27 => "@T.prim_func(s_tir=True)",
        }
    }

    /// Returns the name of a block in `T.block("C")`.
    pub(super) fn block(self) -> &'static str {
        match self {
            Self::Canonical | Self::Tvm0_27 => "sblock",
            Self::Tvm0_16 => "block",
        }
    }

    /// Returns the function that allocates memory: that of a block or of a function with blocks, or other memory.
    pub(super) fn allocation(self, of_block: bool) -> &'static str {
        match (self, of_block) {
            (Self::Canonical, _) | (Self::Tvm0_16, true) | (Self::Tvm0_27, false) => "alloc_buffer",
            (Self::Tvm0_16, false) => "decl_buffer",
            (Self::Tvm0_27, true) => "sblock_alloc_buffer",
        }
    }

    /// Returns whether bindings, allocations and views last until the end of the block around them, so that no `with` statement can
    /// end one earlier.
    pub(super) fn is_flat(self) -> bool {
        match self {
            Self::Canonical | Self::Tvm0_16 => false,
            Self::Tvm0_27 => true,
        }
    }

    /// Returns the annotation of a binding.
    pub(super) fn binding(self, ty: DataType) -> String {
        match self {
            Self::Canonical | Self::Tvm0_16 => format!("T.{ty}"),
            Self::Tvm0_27 => format!("T.let[T.{ty}]"),
        }
    }

    /// Returns the name of a scope.
    pub(super) fn scope(self, scope: Scope) -> &'static str {
        if !self.is_tvm() {
            return scope.name();
        }
        match scope {
            Scope::Texture => "global.texture",
            Scope::TextureWeight => "global.texture-weight",
            Scope::TextureNhwc => "global.texture-nhwc",
            Scope::Global | Scope::Shared | Scope::Local => scope.name(),
        }
    }

    /// Returns whether a buffer can have axis separators.
    pub(super) fn has_separators(self) -> bool {
        match self {
            Self::Canonical | Self::Tvm0_16 => true,
            Self::Tvm0_27 => false,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == text).ok_or_else(|| UnknownDialect(text.to_owned()))
    }
}

/// A notation that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDialect(String);

impl fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Dialect::ALL.map(Dialect::name);
        write!(f, "`{}` is no notation of TVMScript: there are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownDialect {}

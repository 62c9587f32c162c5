//! What a pass claims to have done. Plain data: the judge turns it into obligations, and believes none of it.

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::index_map::IndexMap;
use crate::var::Var;

/// The claim of a pass that rewrites a program: which buffers became which, and how their indices moved.
///
/// Everything else in the program after the pass corresponds to the program before it statement by statement.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Name of the pass.
    pub pass: String,
    /// One claim for each buffer that appears in the program after the pass and not before it.
    pub buffers: Vec<BufferClaim>,
    /// Padding that has a value after the pass.
    pub fills: Vec<PadFill>,
}

/// The padding of a buffer has a value.
///
/// The pass added a nest of serial loops over the whole of `buffer.shape`, in order, around
/// `if padding: buffer[...] = value`, with `padding` that of `inverse`: first in the function for a parameter, first under the
/// allocation otherwise. There is none where `padding` is `False`.
#[derive(Clone, Debug)]
pub struct PadFill {
    /// The buffer in the program after.
    pub buffer: Buffer,
    /// Which of its elements are padding, and the way back for the others.
    pub inverse: InverseClaim,
    /// The value, a constant of the buffer's type.
    pub value: Expr,
    /// Whether the value is a premise: the buffer is a parameter that the function only reads, and the caller packs it.
    pub by_host: bool,
}

/// A buffer was replaced by another, and its indices moved by a map.
#[derive(Clone, Debug)]
pub struct BufferClaim {
    /// The buffer in the program before.
    pub before: Buffer,
    /// Its replacement in the program after.
    pub after: Buffer,
    /// From indices of `before` to indices of `after`; its domain is the shape of `before`.
    pub map: IndexMap,
    /// What the map does.
    pub change: BufferChange,
    /// Axes of `after` whose extent is stated larger than the largest index needs: padding on purpose.
    pub padded_axes: Vec<usize>,
}

/// Why a buffer's indices moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferChange {
    /// A layout transformation: the memory itself is rearranged, for every alias alike.
    Layout,
    /// Each separator group became the row-major numeral of its axes; strides and offset are folded in.
    Flatten,
    /// A buffer in a texture scope became a texel buffer `[height, width, 4]` ([`crate::texture`]).
    Texture,
    /// The indices stay; name, scope or lanes changed.
    Rename,
}

/// The claim of a lowering from a [`crate::Definition`] to a program: which loops compute which tensor.
#[derive(Clone, Debug, Default)]
pub struct LoweringEvidence {
    /// Buffers of the program that hold a tensor of the definition, with the same indices; the tensor itself, where
    /// the program uses it, is among them.
    pub holders: Vec<Holder>,
    /// One claim for each store of the program, in program order.
    pub stores: Vec<StoreClaim>,
}

/// A buffer that holds a tensor.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The tensor of the definition.
    pub tensor: Buffer,
    /// The buffer of the program.
    pub buffer: Buffer,
}

/// What a store is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreRole {
    /// Writes the value of an element that is no reduction.
    Compute,
    /// Writes the identity of a reduction.
    Init,
    /// Combines one more value into a reduction.
    Update,
    /// Copies an element from another holder of the same tensor.
    Copy,
}

/// How the loops around a store visit the axes of a stage.
///
/// `axes` and `inverse` together claim that the iterations that pass the guards are in one-to-one correspondence with
/// the indices of the stage.
#[derive(Clone, Debug)]
pub struct StoreClaim {
    /// The tensor of the definition that is written.
    pub tensor: Buffer,
    /// What the store is for.
    pub role: StoreRole,
    /// The variables that stand for the indices in `inverse`: one for each axis of the tensor, and, for an update, one
    /// for each reduced axis after them.
    pub axis_vars: Vec<Var>,
    /// The value of each of `axis_vars` in terms of the loop variables.
    pub axes: Vec<Expr>,
    /// Each loop variable around the store, outermost first, in terms of `axis_vars`.
    pub inverse: Vec<(Var, Expr)>,
}

/// A claimed left inverse of an index map, and a claim of what is padding.
///
/// `inverse(map(x)) = x` for every logical index `x`, and `map(inverse(p)) = p` for every physical index `p` that is no
/// padding: both are obligations, as is that exactly the padding is reached by nothing.
#[derive(Clone, Debug)]
pub struct InverseClaim {
    /// The physical indices, one for each output of the map.
    pub vars: Vec<Var>,
    /// The logical indices in terms of them, one for each variable of the map.
    pub outputs: Vec<Expr>,
    /// True on exactly the physical indices that no logical index reaches; `False` where there are none.
    pub padding: Expr,
}

impl InverseClaim {
    /// The inverse as a Python lambda.
    pub fn lambda(&self) -> String {
        let outputs: Vec<_> = self.outputs.iter().map(ToString::to_string).collect();
        format!("{} [{}]", self.head(), outputs.join(", "))
    }

    /// The padding as a Python lambda to a truth value.
    pub fn padding_lambda(&self) -> String {
        format!("{} {}", self.head(), self.padding)
    }

    fn head(&self) -> String {
        let vars: Vec<_> = self.vars.iter().map(ToString::to_string).collect();
        if vars.is_empty() { "lambda:".to_owned() } else { format!("lambda {}:", vars.join(", ")) }
    }
}

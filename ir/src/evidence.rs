//! Evidence: what a pass claims about its rewrite, as plain data. The judge turns each claim into proof obligations.
//!
//! A wrong claim cannot make a wrong rewrite pass: the obligations that follow from it fail.

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::func::PrimFunc;
use crate::index_map::IndexMap;
use crate::lifting::Lifting;
use crate::var::Var;

/// The claims of a pass that rewrites a program: which buffers were replaced, and how their indices changed.
///
/// Apart from these claims, the program after the pass corresponds to the program before it statement by statement.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The name of the pass.
    pub pass: String,
    /// One claim for each buffer of the program after the pass that the program before it does not contain.
    pub buffers: Vec<BufferClaim>,
    /// The buffers whose padding has a defined value after the pass.
    pub fills: Vec<PadFill>,
    /// Buffers of the program after the pass whose claims were guessed from the shapes, because no pass made them. A wrong
    /// guess says nothing about the programs.
    pub guessed: Vec<Buffer>,
    /// What corresponds, apart from the buffers.
    pub comparison: Comparison,
}

/// The claim about what corresponds in two programs.
#[derive(Clone, Debug, Default)]
pub enum Comparison {
    /// The program after corresponds to the program before statement by statement and loop by loop.
    #[default]
    Statements,
    /// The iterations of the stores were put into another order.
    Iterations(Reordering),
    /// Values go through other memory, and the parameters hold the same values in the end. The claims about buffers are then about
    /// parameters alone.
    Values(Flow),
    /// Both programs compute definitions, and these are equal. The claims about buffers are then about parameters alone.
    Definitions(Box<Lifting>),
    /// Statements on vectors are loops over their lanes, and the programs without vectors mean the same. The claims about buffers are
    /// then those about the programs without vectors.
    Scalarized(Box<Scalarization>),
    /// The programs without barriers, whose groups of threads run phase by phase, mean the same. The claims about buffers are then
    /// those about these programs.
    Phases(Box<Phased>),
    /// The programs are the same apart from their barriers, and neither has a race: each means what the program with the barriers of both
    /// means. Nothing is claimed about buffers.
    Barriers,
    /// The program after checks the description of its call first, and then is the program before. Its parameters are those of the program
    /// before and the fields of [`crate::convention`]. Nothing is claimed about buffers.
    Packed,
    /// Nothing inside corresponds, and yet the parameters hold the same values in the end. The claims about buffers are then
    /// about parameters alone.
    Results,
}

/// Two programs without vectors, and why they mean the same.
///
/// ```text
/// A[ramp(i * 4, 1, 4)] = B[i]          for lane in 4: A[i * 4 + lane] = B[i, lane]          B held vectors of four lanes
/// ```
#[derive(Clone, Debug)]
pub struct Scalarization {
    /// The program before, without vectors.
    pub before: PrimFunc,
    /// The program after, without vectors.
    pub after: PrimFunc,
    /// The stores of vectors of each program, counted in program order, whose values are kept in memory of their own until all lanes
    /// are read.
    pub buffered: [Vec<usize>; 2],
    /// Why these two mean the same.
    pub evidence: Evidence,
}

/// Two programs without barriers, and why they mean the same; see [`crate::phases`].
#[derive(Clone, Debug)]
pub struct Phased {
    /// The program before, phase by phase.
    pub before: PrimFunc,
    /// The program after, phase by phase.
    pub after: PrimFunc,
    /// Why these two mean the same.
    pub evidence: Evidence,
}

/// The claim that a program has the iterations of another one in another order: loops were split, fused, interchanged, tiled,
/// unrolled, peeled, skewed or distributed.
#[derive(Clone, Debug, Default)]
pub struct Reordering {
    /// For each store of the program after, in program order, what its iterations were. Usually they all were iterations of one
    /// store; if not, a claim holds where those in front of it do not.
    pub stores: Vec<Vec<StoreOrigin>>,
}

/// The claim that iterations of a store after are those of a store before, in other loops.
///
/// ```text
/// before: for i in n: A[i] = 0             forward: i = 8 * io + ii
/// after:  for io, ii: if 8 * io + ii < n:  back: io = i // 8, ii = i % 8
///             A[8 * io + ii] = 0
/// ```
#[derive(Clone, Debug)]
pub struct StoreOrigin {
    /// Which iterations: a condition on the loop variables after. `None` for all that are left.
    pub when: Option<Expr>,
    /// The position of the store among those of the program before.
    pub before: usize,
    /// The value of each loop around the store before, outermost first, in terms of the loop variables after.
    pub forward: Vec<Expr>,
    /// The value of each loop around the store after, outermost first, in terms of the loop variables before.
    pub back: Vec<Expr>,
}

/// The claim that two programs compute the same values, wherever these are kept on the way: in caches, registers, merged or doubled
/// buffers, or nowhere.
///
/// Both programs are looked at as if each parameter that is written were read once more in the end, element by element, in terms
/// of its indices before: those reads come behind the stores of the program, in the order of the parameters.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The indices of the reads in the end, as the claims of their sources name them: one variable for each axis.
    pub index: Vec<Var>,
    /// Where the values come from that the program before reads.
    pub before: Vec<Sources>,
    /// Where the values come from that the program after reads.
    pub after: Vec<Sources>,
    /// What each store after is, and at last each read in the end.
    pub stores: Vec<Origin>,
}

/// The claim that the instances of a store after write what instances before wrote.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The instances before. No store where the value is an intermediate one, which the program before does not store.
    pub instances: Vec<Instance>,
    /// Stores before the values of which are computed once more here, instead of being read.
    pub opened_before: Vec<usize>,
    /// Stores after the values of which the program before computes once more here.
    pub opened_after: Vec<usize>,
    /// Where a store reads what a parameter held at the call: an instance before that does so, too. A parameter that the program before
    /// writes first may hold nothing.
    pub given: Option<Instance>,
}

/// For each value that a store reads from memory that the program writes, in the order of the text: the store that wrote it.
pub type Sources = Vec<Vec<Instance>>;

/// An instance of a store: the store, and the values of the loops around it. A list of instances holds case by case: each one where
/// its condition holds and those in front of it do not.
///
/// ```text
/// for i: for k: C[i] = C[i] + A[i, k]     the value of C[i] was written
///                                         by this store at (i, k - 1), when 0 <= k - 1; else it is what the call found
/// ```
#[derive(Clone, Debug)]
pub struct Instance {
    /// In which cases: a condition on the loop variables of the reader. `None` for all that are left.
    pub when: Option<Expr>,
    /// The position of the store in its program. As the source of a value, `None` is what memory held when the program was called.
    pub store: Option<usize>,
    /// The value of each loop around that store, outermost first.
    pub at: Vec<Expr>,
}

/// The claim that the padding of a buffer has a certain value.
///
/// The pass inserts a nest of serial loops over the whole of `buffer.shape`, in row-major order, around
/// `if padding: buffer[...] = value`, where `padding` is that of `inverse`. The nest is the first statement of the
/// function for a parameter, and the first statement under the allocation otherwise. It is absent if `padding` is
/// `False`, and if the caller fills the padding (`by_host`).
#[derive(Clone, Debug)]
pub struct PadFill {
    /// The buffer, in the program after the pass.
    pub buffer: Buffer,
    /// Which elements are padding, and the inverse map for all others.
    pub inverse: InverseClaim,
    /// The padding value, a constant of the buffer's type.
    pub value: Expr,
    /// Whether the value is a premise instead of an effect: the buffer is a parameter that the function only reads,
    /// and the caller writes the padding when it packs the data.
    pub by_host: bool,
}

/// The claim that a buffer was replaced by another one whose indices are mapped.
#[derive(Clone, Debug)]
pub struct BufferClaim {
    /// The buffer in the program before the pass.
    pub before: Buffer,
    /// Its replacement in the program after the pass.
    pub after: Buffer,
    /// The map from indices of `before` to indices of `after`. Its domain is the shape of `before`.
    pub map: IndexMap,
    /// The kind of change.
    pub change: BufferChange,
    /// The axes of `after` whose stated extent exceeds the largest index on purpose, as padding.
    pub padded_axes: Vec<usize>,
}

/// The kind of change that a map describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferChange {
    /// A layout transformation. The memory itself is rearranged, for all aliases alike.
    Layout,
    /// Each separator group was linearized in row-major order. Strides and offset are folded into the index.
    Flatten,
    /// A buffer in a texture scope became a texel buffer `[height, width, 4]` (see [`crate::texture`]).
    Texture,
    /// The indices are unchanged; name, scope or number of lanes changed.
    Rename,
}

/// The claims of a lowering from a [`crate::Definition`] to a program: which loops compute which tensor.
#[derive(Clone, Debug, Default)]
pub struct LoweringEvidence {
    /// The buffers of the program that contain a tensor of the definition at the same indices. If the program uses
    /// the buffer of the tensor itself, the list contains it too.
    pub holders: Vec<Holder>,
    /// One claim for each store of the program, in program order.
    pub stores: Vec<StoreClaim>,
}

/// A buffer of the program that contains a tensor of the definition.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The tensor of the definition.
    pub tensor: Buffer,
    /// The buffer of the program.
    pub buffer: Buffer,
}

/// The purpose of a store in a lowered program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreRole {
    /// Writes the value of an element that is not a reduction.
    Compute,
    /// Writes the identity of a reduction.
    Init,
    /// Combines one more value into a reduction.
    Update,
    /// Copies an element from another buffer that contains the same tensor.
    Copy,
}

/// How the loops around a store cover the axes of a stage.
///
/// `axes` and `inverse` together claim that the iterations that pass the guards are in one-to-one correspondence with
/// the index space of the stage.
#[derive(Clone, Debug)]
pub struct StoreClaim {
    /// The tensor of the definition that the store writes.
    pub tensor: Buffer,
    /// The purpose of the store.
    pub role: StoreRole,
    /// The variables that stand for the stage's indices in `inverse`: one for each axis of the tensor, followed, for
    /// an update, by one for each reduced axis.
    pub axis_vars: Vec<Var>,
    /// The value of each of `axis_vars` in terms of the loop variables.
    pub axes: Vec<Expr>,
    /// Each loop variable around the store, outermost first, in terms of `axis_vars`.
    pub inverse: Vec<(Var, Expr)>,
}

/// A claimed left inverse of an index map, and a claimed padding predicate.
///
/// Three proof obligations follow: `inverse(map(x)) = x` for every logical index `x`; `map(inverse(p)) = p` for every
/// physical index `p` that is not padding; and `padding` holds for exactly the physical indices that no logical index
/// reaches.
#[derive(Clone, Debug)]
pub struct InverseClaim {
    /// The physical indices, one variable for each output of the map.
    pub vars: Vec<Var>,
    /// The logical indices in terms of `vars`, one for each variable of the map.
    pub outputs: Vec<Expr>,
    /// True for exactly the physical indices that no logical index reaches. The constant `False` if there are none.
    pub padding: Expr,
}

impl InverseClaim {
    /// Returns the inverse as a Python lambda.
    pub fn lambda(&self) -> String {
        let outputs: Vec<_> = self.outputs.iter().map(ToString::to_string).collect();
        format!("{} [{}]", self.head(), outputs.join(", "))
    }

    /// Returns the padding predicate as a Python lambda.
    pub fn padding_lambda(&self) -> String {
        format!("{} {}", self.head(), self.padding)
    }

    /// Returns `lambda p0, p1:`, the parameters of both lambdas.
    fn head(&self) -> String {
        let vars: Vec<_> = self.vars.iter().map(ToString::to_string).collect();
        if vars.is_empty() { "lambda:".to_owned() } else { format!("lambda {}:", vars.join(", ")) }
    }
}

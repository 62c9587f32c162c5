//! Faults by name: places where this project can be broken on purpose, to measure whether its oracles see it.
//!
//! A fault is a branch `if on(Fault::X) { wrong } else { right }` in the code that it breaks. Without the feature `sabotage`,
//! [`on`] is the constant `false` and the branch is gone; with it, at most one fault is on at a time, for the process.
//! [`FAULTS`] is the whole list; those marked as decoys change the code and not what it does: whoever flags one is wrong.

/// What a fault breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// A pass, or the algebra that passes stand on.
    Passes,
    /// The judge: its encoding and its tiers.
    Judge,
    /// The memory planner.
    Planner,
    /// The reader or the printer.
    Script,
    /// The interpreter.
    Interpreter,
    /// The code generator.
    Codegen,
}

impl Room {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Judge => "judge",
            Self::Planner => "planner",
            Self::Script => "script",
            Self::Interpreter => "interpreter",
            Self::Codegen => "codegen",
        }
    }
}

/// A row of the list.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The fault.
    pub fault: Fault,
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it is.
    pub room: Room,
    /// What is wrong then, in a line; for a decoy, what is different and yet the same.
    pub summary: &'static str,
    /// Whether it changes nothing that anybody could see.
    pub is_decoy: bool,
}

macro_rules! faults {
    ($($kind:ident $fault:ident $name:literal $room:ident $summary:literal;)*) => {
        /// A place that can be broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault { $(#[doc = $summary] $fault,)* }

        /// Every fault, in the order of the rooms.
        pub static FAULTS: &[Row] = &[$(Row {
            fault: Fault::$fault,
            name: $name,
            room: Room::$room,
            summary: $summary,
            is_decoy: faults!(@ $kind),
        },)*];
    };
    (@ fault) => { false };
    (@ decoy) => { true };
}

faults! {
    fault FlattenSwapsStrides "flatten-swaps-strides" Passes "flatten_buffer takes the extent of the axis before for a stride";
    fault FlattenForgetsOffset "flatten-forgets-offset" Passes "flatten_buffer drops the offset of a buffer with strides";
    fault RemapUnitLanes "remap-unit-lanes" Passes "the lanes of a vector access that is moved are taken for neighbours";
    fault DivideIgnoresRest "divide-ignores-rest" Passes "(g*s + b) // (g*t) becomes s // t whatever b is";
    fault DivideTowardsZero "divide-towards-zero" Passes "a quotient between -1 and 0 becomes 0";
    fault RemainderKeepsBlock "remainder-keeps-block" Passes "a dividend in one block keeps the multiple of the divisor in its remainder";
    fault NegationLosesEquality "negation-loses-equality" Passes "the opposite of < is >";
    fault CompareDecidesEarly "compare-decides-early" Passes "x < y is taken for true where x <= y";
    fault IntervalTwoCorners "interval-two-corners" Passes "the interval of a product looks at two of its four corners";
    fault SymbolIsFour "symbol-is-four" Passes "an extent that is not known is taken for at least 4";
    fault LayoutLosesExtent "layout-loses-extent" Passes "a layout may be one after which no argument tells an extent that is needed";
    fault ShapeForgetsLast "shape-forgets-last" Passes "the extent of an axis is its largest index where a search finds that";
    fault PaddingNotDeclared "padding-not-declared" Passes "apply_buffer_transforms does not say which axes are padded";
    fault TileSkipsSplit "tile-skips-split" Passes "a tiled dimension of up to two tiles is taken for one tile";
    fault TileCountFloors "tile-count-floors" Passes "the number of tiles is rounded down";
    fault FillMissesLast "fill-misses-last" Passes "the padding of the last tile is not written";
    fault VectorizeUnitStride "vectorize-unit-stride" Passes "vectorize takes every ramp for one of neighbours";
    fault VectorizeForgetsStart "vectorize-forgets-start" Passes "vectorize takes the first lane to be the loop's number 0";
    fault VectorizeReversedLanes "vectorize-reversed-lanes" Passes "a - ramp becomes a ramp that still rises";
    fault TextureGuardDropped "texture-guard-dropped" Passes "a condition on the channels of a texel is dropped";
    fault CertificateForgetsOffset "certificate-forgets-offset" Passes "a digit certificate is found without the offsets of its sums";
    decoy FlattenCommutes "flatten-commutes" Passes "flatten_buffer writes a + b as b + a";
    decoy SimplifyTwice "simplify-twice" Passes "simplify simplifies what it has simplified";
    fault OutsideOffByOne "outside-off-by-one" Judge "enumeration takes an index that equals the extent for one inside";
    fault QuotientDetermines "quotient-determines" Judge "a quotient is taken to determine its dividend";
    fault CollisionSkipsLast "collision-skips-last" Judge "the search for collisions leaves out the last point of a block";
    fault PaddingOneWay "padding-one-way" Judge "enumeration asks only whether padding is reached, not whether the rest is";
    fault RightInverseIgnored "right-inverse-ignored" Judge "enumeration asks of an inverse only that it leads back";
    fault EndsOfSharedAxes "ends-of-shared-axes" Judge "a sum of two values of one index is taken to reach both their ends";
    fault RemaindersOfFewer "remainders-of-fewer" Judge "so many neighbours less one are taken to have all remainders";
    fault BitsSkipLowest "bits-skip-lowest" Judge "equations over bits leave out the lowest bit of a value that is to be reached";
    fault WindowOffByOne "window-off-by-one" Judge "the digits checker lets a sum reach the end of its window";
    fault DigitsReachPadding "digits-reach-padding" Judge "the digits checker does not ask whether padding is reached";
    fault EncodeNeAsEq "encode-ne-as-eq" Judge "a condition x != y is given to Z3 as x == y";
    fault ElseIsNotNegated "else-is-not-negated" Judge "the judge takes the condition to hold in the other branch too";
    fault LockstepIgnoresFirstAxis "lockstep-ignores-first-axis" Judge "lockstep does not compare the first of several indices";
    fault LockstepIgnoresConditions "lockstep-ignores-conditions" Judge "lockstep does not compare conditions that both programs ask";
    fault LockstepIgnoresKinds "lockstep-ignores-kinds" Judge "lockstep lets a serial loop become a parallel one";
    fault LockstepIgnoresExtents "lockstep-ignores-extents" Judge "lockstep compares where loops begin and not how long they are";
    fault RaceIgnoresParallel "race-ignores-parallel" Judge "the judge takes iterations of parallel loops to run one after the other";
    fault MeaningFloors "meaning-floors" Judge "the meaning of a tile rounds the number of tiles down";
    fault MeaningFoldsBackwards "meaning-folds-backwards" Judge "the meaning of a fold takes the minor dimension for the major one";
    fault PlanForgetsReads "plan-forgets-reads" Judge "the judge of plans lets a tensor die with its last write";
    decoy EncodeSwapsEquality "encode-swaps-equality" Judge "an equality is given to Z3 with its sides swapped";
    decoy SitesBackwards "sites-backwards" Judge "the judge decides the statements of a program from the last to the first";
    fault PlannerIgnoresViews "planner-ignores-views" Planner "reading a view does not keep the tensor alive that it shows";
    fault PlannerFreesOutputs "planner-frees-outputs" Planner "the memory of an output is given back after its last use";
    fault PlannerSharesEarly "planner-shares-early" Planner "a tensor may lie where one lies that its step still reads";
    fault PlannerUnaligned "planner-unaligned" Planner "offsets in a pool are not aligned";
    fault ArenaSplitsWrong "arena-splits-wrong" Planner "what is left of a free block counts as the whole block";
    fault GapForgetsLonger "gap-forgets-longer" Planner "a gap begins after the last tensor looked at, even inside a longer one";
    fault RectanglesMeetByOne "rectangles-meet-by-one" Planner "textures side by side may share a row";
    fault SheetReadAndWritten "sheet-read-and-written" Planner "a texture may lie in a sheet that its step both reads and writes";
    fault TokenDoesNotGrow "token-does-not-grow" Planner "a token that is taken again keeps its size";
    decoy PlannerOtherTies "planner-other-ties" Planner "of equal tensors the last is placed first";
    fault PrinterRightOperand "printer-right-operand" Script "a - (b - c) is printed without parentheses";
    fault PrinterNegatedConstant "printer-negated-constant" Script "the minus of a constant is printed as a negative constant";
    fault PrinterRoundsFloats "printer-rounds-floats" Script "floats are printed with six digits";
    fault PrinterMovesSeparator "printer-moves-separator" Script "the separators of an index map are printed one output late";
    fault PrinterUnrollIsSerial "printer-unroll-is-serial" Script "an unrolled loop is printed as a serial one";
    fault PrinterReusesNames "printer-reuses-names" Script "a variable may be printed with the name of another one in scope";
    fault ReaderStopIsExtent "reader-stop-is-extent" Script "a loop from 2 to 7 is read as one of 7 iterations";
    fault XlaDropsMemorySpace "xla-drops-memory-space" Script "the memory space of a tiled layout is not printed";
    decoy PrinterMoreParentheses "printer-more-parentheses" Script "operators are printed in parentheses everywhere";
    fault DivisionTruncates "division-truncates" Interpreter "floor division of a negative number rounds towards zero";
    fault RemainderKeepsSign "remainder-keeps-sign" Interpreter "the remainder of a negative number by a positive one stays negative";
    fault ShiftFillsZeros "shift-fills-zeros" Interpreter "a right shift of a negative number fills with zeros";
    fault MinimumKeepsNan "minimum-keeps-nan" Interpreter "the minimum of NaN and a number is NaN";
    fault CastWraps "cast-wraps" Interpreter "a float that is too large for an integer wraps instead of saturating";
    fault HalfTowardsZero "half-towards-zero" Interpreter "float16 is rounded towards zero";
    fault UnsignedBytesHaveSigns "unsigned-bytes-have-signs" Interpreter "uint8 is read with a sign";
    fault LanesAreNeighbours "lanes-are-neighbours" Interpreter "in a nest that runs at once, the lanes of a vector are neighbours whatever its stride";
    fault SpreadDropsRest "spread-drops-rest" Interpreter "a loop spread over threads leaves out the iterations after the last whole chunk";
    fault StreamForgetsOffset "stream-forgets-offset" Interpreter "a nest that runs at once forgets where its view begins";
    fault BoundsOffByOne "bounds-off-by-one" Interpreter "an index that equals the extent is let through in a nest that runs at once";
    decoy OneByOne "one-by-one" Interpreter "no nest runs at once: every iteration by itself";
    decoy MinimumCommutes "minimum-commutes" Interpreter "the minimum of two integers looks at the second first";
    fault KernelFloorDivTruncates "kernel-floor-div-truncates" Codegen "a kernel's floor division rounds towards zero";
    fault KernelLanesAreNeighbours "kernel-lanes-are-neighbours" Codegen "a kernel takes the lanes of every ramp for neighbours";
    fault KernelHalfTruncates "kernel-half-truncates" Codegen "a kernel rounds float16 towards zero when it stores it";
    fault KernelImageTransposed "kernel-image-transposed" Codegen "a kernel swaps the row and the column of a texel";
    fault KernelIdNotReduced "kernel-id-not-reduced" Codegen "loops that share a dimension of the launch are not taken apart";
    fault KernelForgetsBarrier "kernel-forgets-barrier" Codegen "a kernel does not wait between statements that share elements";
    fault KernelDropsElse "kernel-drops-else" Codegen "a kernel runs the other branch of a condition always";
    fault KernelLoopsToExtent "kernel-loops-to-extent" Codegen "a kernel's loop that does not begin at 0 ends at its extent";
    fault KernelMaximumIsNan "kernel-maximum-is-nan" Codegen "a kernel's minimum and maximum of floats keep a NaN";
    decoy KernelSumsCommute "kernel-sums-commute" Codegen "a kernel adds the parts of a position in another order";
    decoy KernelOtherNames "kernel-other-names" Codegen "helper functions of a kernel have other names";
}

/// The fault of that name.
pub fn by_name(name: &str) -> Option<&'static Row> {
    FAULTS.iter().find(|row| row.name == name)
}

#[cfg(feature = "sabotage")]
mod switch {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use super::Fault;

    /// Number of the fault that is on, plus one; 0 if none is.
    static ACTIVE: AtomicUsize = AtomicUsize::new(0);

    /// How often the branch of the fault that is on was taken.
    static REACHED: AtomicU64 = AtomicU64::new(0);

    /// Whether faults can be switched on.
    pub const AVAILABLE: bool = true;

    /// Whether this fault is on.
    #[inline]
    pub fn on(fault: Fault) -> bool {
        let is_on = ACTIVE.load(Ordering::Relaxed) == fault as usize + 1;
        if is_on {
            REACHED.fetch_add(1, Ordering::Relaxed);
        }
        is_on
    }

    /// How often somebody asked for the fault that is on, since the last time this was asked: an oracle that never comes to the
    /// place cannot see what is wrong there.
    pub fn reached() -> u64 {
        REACHED.swap(0, Ordering::Relaxed)
    }

    /// Switches one fault on, and every other off; none switches all off. For the whole process, from now on.
    pub fn switch(fault: Option<Fault>) {
        ACTIVE.store(fault.map_or(0, |fault| fault as usize + 1), Ordering::SeqCst);
    }
}

#[cfg(not(feature = "sabotage"))]
mod switch {
    use super::Fault;

    /// Whether faults can be switched on: no, this is the real thing.
    pub const AVAILABLE: bool = false;

    /// Whether this fault is on: never.
    #[inline]
    pub const fn on(_: Fault) -> bool {
        false
    }

    /// How often a fault that is on was asked for: never.
    pub const fn reached() -> u64 {
        0
    }

    /// Does nothing: there is nothing to switch.
    pub const fn switch(_: Option<Fault>) {}
}

pub use switch::{AVAILABLE, on, reached, switch};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = FAULTS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        for row in FAULTS {
            assert_eq!(by_name(row.name).map(|found| found.fault), Some(row.fault));
            assert!(row.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", row.name);
        }
    }

    #[test]
    fn without_the_feature_nothing_is_ever_on() {
        switch(Some(Fault::DivisionTruncates));
        reached();
        assert!(!on(Fault::FlattenSwapsStrides));
        assert_eq!(on(Fault::DivisionTruncates), AVAILABLE);
        assert_eq!((reached(), reached()), (u64::from(AVAILABLE), 0));
        switch(None);
        assert!(!on(Fault::DivisionTruncates));
    }
}

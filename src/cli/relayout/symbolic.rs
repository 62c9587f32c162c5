//! `relayout --shape n,c,7,9`: a move for all extents. Its strategy is chosen at samples of the symbols, and its program is proved for all of
//! them, with its kernel. Where that is not proved, the program applies both index maps to each logical index.

use tilewright_ir::{BinaryOp, DataType, Expr, IndexMap, PrimFunc, Var};
use tilewright_relayout::program::{Elements, moved, plain_of};
use tilewright_relayout::{Maps, Sizes, Strategy, device};
use tilewright_script::{Source, Symbols, read_index_map, read_shape};
use tilewright_verify::{Judge, MapClaim, Obligation, Report, Verdict};

use super::super::bitcast::{PairArgs, status};
use super::super::exit::ExitStatus;
use super::super::failure::Failure;
use super::super::options::Global;
use super::super::printer::Printer;
use super::sides::moved_type;
use crate::algebra::{self, Ranges};
use crate::formats;
use crate::pipeline::{self, Program, pair};
use crate::report::Dim;
use crate::report::moved::{LoopRow, MoveReport};

/// A move between two index maps on one logical shape, some extents of which are symbolic.
pub(super) struct Sides {
    from: (String, Side),
    to: (String, Side),
    extents: Vec<Expr>,
    elements: Elements,
    element_bytes: u64,
}

/// An index map with its physical shape.
struct Side {
    map: IndexMap,
    shape: Vec<Expr>,
}

impl Sides {
    /// Reads two index maps, or names of formats. `None` if all extents are numbers.
    ///
    /// # Errors
    /// A text cannot be read, or a map has no physical shape.
    pub(super) fn of_maps(pair: &PairArgs, shape: &str, dtype: DataType) -> Result<Option<Self>, Failure> {
        let source = Source { name: "<--shape>".into(), text: shape.to_owned() };
        let mut symbols = Symbols::default();
        let extents = read_shape(shape, &mut symbols).map_err(|faults| Failure::input(&source, faults))?;
        if extents.iter().all(|extent| extent.vars().is_empty()) {
            return Ok(None);
        }
        let mut side = |name: &str, text: &Option<String>| {
            let text = text.as_deref().unwrap_or_default();
            Ok::<_, Failure>((text.to_owned(), Side::read(name, text, &extents, &mut symbols)?))
        };
        let (from, to) = (side("<A>", &pair.from)?, side("<B>", &pair.to)?);
        let element_bytes = dtype.scalar.bytes() * u64::from(dtype.lanes);
        Ok(Some(Self { from, to, extents, elements: Elements::zero(moved_type(dtype)), element_bytes }))
    }

    /// A symbol that is no extent of either memory by itself.
    fn lost(&self) -> Option<Var> {
        let sizes = || self.from.1.shape.iter().chain(&self.to.1.shape);
        let is_bare = |var: &Var| sizes().any(|size| *size == Expr::from(var));
        self.extents.iter().flat_map(Expr::vars).find(|var| !is_bare(var))
    }

    /// Whether B has as many slots as there are elements. `false` if that does not show in the products.
    fn is_full(&self) -> bool {
        let count = |extents: &[Expr]| extents.iter().cloned().reduce(|a, b| a * b).unwrap_or_else(|| Expr::int(1));
        let spare = Expr::binary(BinaryOp::Sub, count(&self.to.1.shape), count(&self.extents));
        algebra::simplify(&spare, &Ranges::new()).as_const_int() == Some(0)
    }
}

impl Side {
    fn read(name: &str, text: &str, shape: &[Expr], symbols: &mut Symbols) -> Result<Self, Failure> {
        let source = Source { name: name.into(), text: text.to_owned() };
        let fault = |faults| Failure::input(&source, faults);
        if let Some(named) = formats::read(text, shape) {
            let named = named.map_err(fault)?;
            return Ok(Self { map: named.map, shape: named.shape });
        }
        let map = read_index_map(text, Some(shape), symbols).map_err(fault)?;
        let physical = algebra::physical_shape(&map, &[]).map_err(|one| fault(vec![one]))?;
        Ok(Self { map, shape: physical.extents })
    }

    /// That each element has a slot of its own.
    fn keeps_all(&self, judge: &Judge) -> Vec<Report> {
        let claim = MapClaim::new(&self.map, &self.shape);
        [Obligation::Bounds, Obligation::Injective].map(|id| judge.check_map_for(claim, id)).into()
    }
}

/// The failure of a move of data with extents that are not known.
pub(super) fn refused_run(shape: &str) -> Failure {
    let message = format!("`{shape}` has symbolic extents: data are moved for extents that are known");
    Failure::plain("<--shape>", "symbolic-extent", message)
        .with_help("give every extent as a number, or leave --run out: the kernel of --explain is for all extents")
}

/// Proves the program of a move and writes its kernel.
///
/// # Errors
/// The report cannot be written, or the extents do not follow from the shapes of A and B.
pub(super) fn run(
    sides: &Sides,
    judge: &Judge,
    (global, printer): (&Global, &mut Printer),
    is_long: bool,
) -> Result<ExitStatus, Failure> {
    let report = proved(sides, judge, global)?;
    if printer.is_json() {
        printer.json(&report.to_json())?;
    } else {
        printer.result(&report.to_text(printer.style(), (is_long, global.verbose)))?;
    }
    Ok(status(&report.verdicts, report.summary(), global))
}

fn proved(sides: &Sides, judge: &Judge, global: &Global) -> Result<MoveReport, Failure> {
    let (from, to) = (&sides.from.1, &sides.to.1);
    let is_full = sides.is_full();
    let maps = Maps { extents: &sides.extents, from: (&from.map, &from.shape), to: (&to.map, &to.shape) };
    let plain = plain_of(maps, &sides.elements, is_full);
    // The accesses of the program itself are obligations of this comparison.
    let judged = pair::validate(&plain, &plain, &[], judge).map_err(|faults| {
        let texts: Vec<String> = faults.into_iter().map(|fault| fault.diagnostic().message).collect();
        Failure::plain("<--shape>", "symbolic-extent", texts.join("; "))
            .with_help("each symbolic extent has to be an extent of A's or of B's memory")
    })?;
    if judged.reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_)))
        && let Some(lost) = sides.lost()
    {
        let message =
            format!("`{lost}` is no extent of A's memory, nor of B's, so that nothing says that it is at least 1");
        return Err(Failure::plain("<--shape>", "symbolic-extent", message)
            .with_help("give it as a number, or leave an axis of this extent whole on one side"));
    }
    let mut verdicts = [from.keeps_all(judge), to.keeps_all(judge), judged.reports].concat();
    let is_proved = |func: &PrimFunc| {
        let reports = pair::validate(&plain, func, &[], judge).ok()?.reports;
        (!reports.is_empty() && reports.iter().all(|row| row.verdict.is_proved())).then_some(reports)
    };
    // A strategy at samples is a guess: what is not proved of it for all extents is left.
    let chosen = maps.choose(sides.element_bytes).and_then(|(strategy, sizes)| {
        let func = moved(&strategy, &sizes, &sides.elements);
        is_proved(&func).map(|reports| (Chosen { strategy, sizes, func }, reports))
    });
    let (chosen, reports) = chosen.unzip();
    verdicts.extend(reports.into_iter().flatten());
    let kernel = chosen.as_ref().and_then(|one| device::kernel(&one.strategy, &one.sizes, &sides.elements));
    let kernel = kernel.and_then(|func| is_proved(&func).map(|reports| (func, reports)));
    // The first one that is proved down to its kernel; the last one if none is.
    let func = chosen.as_ref().map_or(&plain, |chosen| &chosen.func);
    let candidates = kernel.iter().map(|(func, _)| (func, true)).chain([(func, false), (&plain, false)]);
    let mut lowered = None;
    for (candidate, is_kernel) in candidates {
        let lowering = lowering_of(candidate, judge, global)?;
        let is_done = lowering.steps.iter().flat_map(|step| &step.reports).all(|row| row.verdict.is_proved());
        lowered = Some((is_kernel, lowering));
        if is_done {
            break;
        }
    }
    let (is_kernel, lowering) = lowered.ok_or_else(|| Failure::Internal("a move has no program".into()))?;
    let kernel = kernel.filter(|_| is_kernel).map(|(func, reports)| {
        verdicts.extend(reports);
        func
    });
    verdicts.extend(lowering.steps.iter().flat_map(|step| step.reports.iter().cloned()));
    let source = match &lowering.kernels {
        Some(Ok(kernels)) => Some(kernels.plain().source.clone()),
        Some(Err(_)) | None => None,
    };
    let strategy = chosen.as_ref().map(|chosen| &chosen.strategy);
    Ok(MoveReport {
        schema: "tilewright.relayout-move/1",
        from: sides.from.0.clone(),
        to: sides.to.0.clone(),
        shape: Dim::shape(&sides.extents),
        element_bytes: sides.element_bytes,
        from_shape: Dim::shape(&from.shape),
        to_shape: Dim::shape(&to.shape),
        tile: strategy.map_or("each", Strategy::tile_name),
        loops: chosen.as_ref().map_or_else(Vec::new, Chosen::loops),
        is_wide: strategy.is_some_and(|strategy| strategy.is_wide),
        fill: match strategy {
            Some(strategy) => strategy.fill_name(),
            None if is_full => "none",
            None => "whole",
        },
        program: tilewright_script::print_func(func),
        device_program: kernel.map(|func| tilewright_script::print_func(&func)),
        kernel: source,
        premises: judged.premises.iter().map(ToString::to_string).collect(),
        verdicts,
        ran: None,
    })
}

/// The steps from a program to its kernel.
fn lowering_of(func: &PrimFunc, judge: &Judge, global: &Global) -> Result<pipeline::Lowering, Failure> {
    let func = func.clone();
    let program = Program { func, definition: None, written: None, assumed: Vec::new(), scheduled: Vec::new() };
    let lowering = pipeline::lower(&program, judge, global.allow_unknown, &mut |_, _| {});
    lowering.map_err(|fault| Failure::Internal(format!("{fault:?}")))
}

/// A strategy with its program for all extents.
struct Chosen {
    strategy: Strategy,
    sizes: Sizes,
    func: PrimFunc,
}

impl Chosen {
    fn loops(&self) -> Vec<LoopRow> {
        let names = tilewright_relayout::program::loop_names(&self.strategy);
        let row = |(one, name): (&tilewright_relayout::Loop, String)| {
            let (source, target) = self.sizes.distances(one);
            let [extent, source, target] = [self.sizes.extent(one), source, target].map(|size| dim(&size));
            LoopRow { name, extent, source, target }
        };
        self.strategy.loops.iter().zip(names).map(row).collect()
    }
}

/// A size in a report, simplified.
fn dim(size: &Expr) -> Dim {
    let size = algebra::simplify(size, &Ranges::new());
    Dim::new(&size)
}

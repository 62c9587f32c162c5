//! Definitions: placeholders, computed tensors, axes and reductions.

use tilewright_ir::{self as ir, Diagnostic, Expr};

use super::arith::{check_size, match_types};
use super::names::tensor_name;
use super::{Builder, Built, Tensor, TensorKind, body_expr, reduced_axes};

/// An axis that a reduction runs over: the integers `min..min + extent`.
#[derive(Clone, Debug)]
pub struct ReduceAxis {
    /// The variable, which counts from 0, and the number of values.
    pub axis: ir::Axis,
    /// The first value.
    pub min: Expr,
}

impl ReduceAxis {
    /// The value of the axis in an expression: `min` plus the variable.
    pub fn index(&self) -> Expr {
        let var = Expr::from(&self.axis.var);
        if self.min.as_const_int() == Some(0) { var } else { var + self.min.clone() }
    }
}

/// A new axis of a tensor, `0..extent`. Its variable has the type of the extent.
///
/// # Errors
/// `name`, and those of [`check_extent`].
pub fn axis(name: &str, extent: &Expr) -> Result<ir::Axis, Diagnostic> {
    check_extent(extent)?;
    Ok(ir::Axis { var: ir::Var::new(tensor_name(name)?, extent.dtype()), extent: extent.clone() })
}

/// A new axis for a reduction over `begin..end`, as `te.reduce_axis((begin, end), name)` makes it.
///
/// ```
/// use tilewright_compiler::te::build::reduce_axis;
/// use tilewright_ir::Expr;
///
/// let k = reduce_axis("k", &Expr::int(2), &Expr::int(9))?;
/// assert_eq!((k.axis.extent.as_const_int(), k.index().to_string()), (Some(7), "k + 2".to_owned()));
/// # Ok::<(), tilewright_ir::Diagnostic>(())
/// ```
///
/// # Errors
/// `type` if a bound is no integer of one lane, `extent` if the range is empty or its length leaves the index type, `name`.
pub fn reduce_axis(name: &str, begin: &Expr, end: &Expr) -> Result<ReduceAxis, Diagnostic> {
    check_index(begin)?;
    check_index(end)?;
    let (min, end) = match_types(begin.clone(), end.clone())?;
    let extent = match (min.as_const_int(), end.as_const_int()) {
        (Some(0), _) => end,
        (Some(low), Some(high)) => Expr::int_of(high - low, end.dtype().scalar)
            .ok_or_else(|| Diagnostic::error("extent", None, "the range is too large"))?,
        _ => end - min.clone(),
    };
    Ok(ReduceAxis { axis: axis(name, &extent)?, min })
}

/// A reduction of `source` over `axes`: the body of a computed tensor. The order in which values are combined is open.
///
/// ```
/// use tilewright_compiler::te::build::{Builder, reduce, reduce_axis};
/// use tilewright_ir::{Expr, ReduceOp, ScalarType};
///
/// let mut te = Builder::new();
/// let a = te.placeholder("A", &[7, 9].map(Expr::int), ScalarType::Float32)?;
/// let k = reduce_axis("k", &Expr::int(0), &Expr::int(9))?;
/// let row_sum = te.compute("B", &[Expr::int(7)], |te, i| {
///     reduce(ReduceOp::Sum, te.load(a, &[i[0].clone(), k.index()])?, &[k.axis.clone()])
/// })?;
/// assert_eq!(te.buffer(row_sum)?.rank(), 1);
/// # Ok::<(), tilewright_ir::Diagnostic>(())
/// ```
///
/// # Errors
/// `reduction` if there is no axis or one is named twice, `type` if the operator is not defined for elements of the type.
pub fn reduce(op: ir::ReduceOp, source: Expr, axes: &[ir::Axis]) -> Result<ir::StageBody, Diagnostic> {
    check_reduce_axes(axes)?;
    let ty = source.dtype();
    if !ty.is_scalar() || op.combine().result_type(ty, ty).is_none() {
        return Err(Diagnostic::error("type", None, format!("elements of type {ty} cannot be reduced so")));
    }
    Ok(ir::StageBody::reduce(op, axes.to_vec(), source))
}

/// Checks that a reduction has at least one axis, and each axis once.
pub(crate) fn check_reduce_axes(axes: &[ir::Axis]) -> Built<()> {
    if axes.is_empty() {
        return Err(Diagnostic::error("reduction", None, "a reduction needs at least one axis"));
    }
    let twice = axes.iter().enumerate().find(|(at, axis)| axes[..*at].iter().any(|other| other.var == axis.var));
    match twice {
        Some((_, axis)) => {
            Err(Diagnostic::error("reduction", None, format!("the axis `{}` is reduced twice", axis.var)))
        }
        None => Ok(()),
    }
}

/// Checks an extent: an integer of one lane; a constant one is at least 1.
///
/// # Errors
/// `type`, `extent`.
pub fn check_extent(extent: &Expr) -> Result<(), Diagnostic> {
    check_index(extent)?;
    match extent.as_const_int() {
        Some(value) if value < 1 => {
            let what = if value < 0 { "negative" } else { "below 1" };
            let message = format!("the extent {value} is {what}");
            let help = "every axis has at least one element; a size that is not known is `te.var(\"n\")`";
            Err(Diagnostic::error("extent", None, message).with_help(help))
        }
        _ => Ok(()),
    }
}

/// Checks a shape: every extent, and that the number of elements is a size.
///
/// # Errors
/// Those of [`check_extent`]; `size` if the constant extents alone make too many elements.
pub fn check_shape(shape: &[Expr]) -> Result<(), Diagnostic> {
    shape.iter().try_for_each(check_extent)?;
    let constants: Vec<i128> = shape.iter().filter_map(Expr::as_const_int).collect();
    ir::checked_size(&constants).map(|_| ()).map_err(|error| Diagnostic::error("size", None, error.to_string()))
}

/// An index, extent or bound is an integer of one lane.
fn check_index(expr: &Expr) -> Built<()> {
    let ty = expr.dtype();
    if ty.scalar.is_integer() && ty.is_scalar() {
        return Ok(());
    }
    Err(Diagnostic::error("type", None, format!("expected an integer, found an expression of type {ty}")))
}

impl Builder {
    /// A symbolic extent: an integer of at least 1 that an argument's shape binds, or a scalar argument.
    ///
    /// # Errors
    /// `name`; `dtype` if the type is no integer of one lane.
    pub fn symbol(&mut self, name: &str, dtype: impl Into<ir::DataType>) -> Result<ir::Var, Diagnostic> {
        let (name, ty) = (tensor_name(name)?, dtype.into());
        if !(ty.scalar.is_integer() && ty.is_scalar()) {
            return Err(Diagnostic::error("dtype", None, format!("an extent is an integer, not {ty}")));
        }
        let var = ir::Var::new(name, ty);
        self.symbols.push(var.clone());
        Ok(var)
    }

    /// An input of a shape in elements.
    ///
    /// # Errors
    /// `name`; those of [`check_shape`]; `dtype` if the element type is a handle.
    pub fn placeholder(
        &mut self,
        name: &str,
        shape: &[Expr],
        dtype: impl Into<ir::DataType>,
    ) -> Result<Tensor, Diagnostic> {
        let (name, dtype) = (tensor_name(name)?, dtype.into());
        check_shape(shape)?;
        if dtype.scalar == ir::ScalarType::Handle {
            return Err(Diagnostic::error("dtype", None, "a handle is no element type"));
        }
        let buffer = self.placed(ir::Buffer::compact(name, dtype, shape.to_vec()));
        Ok(self.add_tensor(buffer, TensorKind::Input))
    }

    /// A computed tensor. `value` gets the builder, to load from other tensors, and the index of an element: one variable
    /// for each axis, named `i0`, `i1` and so on. [`Builder::define`] takes axes of other names.
    ///
    /// # Errors
    /// Those of `value`, of [`axis`] and of [`Builder::define`].
    pub fn compute(
        &mut self,
        name: &str,
        shape: &[Expr],
        value: impl FnOnce(&Self, &[Expr]) -> Result<ir::StageBody, Diagnostic>,
    ) -> Result<Tensor, Diagnostic> {
        let axes = (0..).zip(shape).map(|(position, extent)| axis(&format!("i{position}"), extent));
        let axes = axes.collect::<Built<Vec<_>>>()?;
        let indices: Vec<_> = axes.iter().map(|axis| Expr::from(&axis.var)).collect();
        let body = value(self, &indices)?;
        self.define(name, axes, body)
    }

    /// A computed tensor over given axes, whose extents are its shape. The type of its elements is that of the body.
    ///
    /// # Errors
    /// `name`; those of [`check_shape`]; `expression-size` if the body has too many nodes; the errors of
    /// [`type_of`](ir::check::type_of) if it is not well typed; `stray-axis` if it uses a variable that is neither an axis,
    /// nor reduced over, nor a symbolic extent of this builder; `foreign-tensor` if it reads a tensor of another builder.
    pub fn define(&mut self, name: &str, axes: Vec<ir::Axis>, body: ir::StageBody) -> Result<Tensor, Diagnostic> {
        let name = tensor_name(name)?;
        let shape: Vec<Expr> = axes.iter().map(|axis| axis.extent.clone()).collect();
        check_shape(&shape)?;
        let expr = body_expr(&body);
        check_size(expr)?;
        ir::check::type_of(expr).map_err(|mut error| {
            // Places inside of the expression are those of other definitions.
            error.labels.clear();
            error
        })?;
        let known = |var: &ir::Var| {
            axes.iter().chain(reduced_axes(&body)).any(|axis| axis.var == *var) || self.symbols.contains(var)
        };
        if let Some(stray) = expr.vars().into_iter().find(|var| !known(var)) {
            let message = format!("the axis `{stray}` is neither an index of this tensor nor reduced over");
            return Err(Diagnostic::error("stray-axis", None, message)
                .with_help(format!("reduce over it: te.sum(..., axis={stray})")));
        }
        for buffer in super::inline::reads(&body) {
            // `load` checks this already, but a caller may have made the expression by itself.
            let Some(index) = self.position_of(&buffer) else {
                let message = format!("`{buffer}` is no tensor of this builder");
                return Err(Diagnostic::error("foreign-tensor", None, message));
            };
            self.check_load(self.handle(index), buffer.rank())?;
        }
        let buffer = self.placed(ir::Buffer::compact(name, expr.dtype(), shape));
        Ok(self.add_tensor(buffer, TensorKind::Computed { axes, body }))
    }

    /// An element of an input or a computed tensor, one index for each axis.
    ///
    /// # Errors
    /// `foreign-tensor`; `cache-read` for a cache, which belongs to a schedule; `rank` if the number of indices is not the
    /// number of axes; `type` if an index is no integer of one lane.
    pub fn load(&self, tensor: Tensor, indices: &[Expr]) -> Result<Expr, Diagnostic> {
        self.check_load(tensor, indices.len())?;
        indices.iter().try_for_each(check_index)?;
        Ok(Expr::load(&self.data(tensor)?.buffer, indices.to_vec()))
    }

    /// Checks that an element of a tensor can be read with `n_indices` indices.
    pub(crate) fn check_load(&self, tensor: Tensor, n_indices: usize) -> Built<()> {
        let data = self.data(tensor)?;
        if let TensorKind::Cache { .. } = data.kind {
            let message = "a cache of a schedule cannot be read by a definition";
            return Err(Diagnostic::error("cache-read", None, message).with_help("read the tensor itself"));
        }
        let rank = data.buffer.rank();
        if n_indices == rank {
            return Ok(());
        }
        let message = format!("`{}` has {rank} axes, but {n_indices} indices are given", data.buffer);
        let error = Diagnostic::error("rank", None, message);
        Err(data.place.map_or(error.clone(), |place| error.with_label(place, "defined here")))
    }

    /// Renames a tensor. It must not have been read before, because an expression contains the buffer under its old name.
    pub(crate) fn rename(&mut self, tensor: Tensor, name: &str) {
        let data = &mut self.tensors[tensor.index];
        data.buffer = data.buffer.with(|info| {
            name.clone_into(&mut info.name);
            info.data = ir::Var::new(name, ir::DataType::HANDLE);
        });
    }

    /// Position of the tensor whose buffer this is.
    pub(super) fn position_of(&self, buffer: &ir::Buffer) -> Option<usize> {
        self.tensors.iter().position(|tensor| tensor.buffer == *buffer)
    }

    /// The buffer with the current place.
    fn placed(&self, buffer: ir::Buffer) -> ir::Buffer {
        match self.place {
            Some(place) => buffer.with(|info| info.span = Some(place)),
            None => buffer,
        }
    }
}

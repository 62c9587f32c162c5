//! Printing of device functions: the call on the host, and the function behind that of the host.
//!
//! ```python
//! T.call_packed("main_kernel", A.data, x)                                     # canonical
//! Module.main_kernel(A.data, x)                                               # 0.16
//! T.call_ffi_kernel("main_kernel", A.data, x, 10, launch_params=["blockIdx.x"], ret_ty="int32")     # 0.27
//!
//! @T.prim_func
//! def main_kernel(A_ptr: T.handle("float32", "global"), x: T.int32):
//!     A = T.decl_buffer((10, 24), "float32", data=A_ptr)
//! ```

use tilewright_ir::device::uses;
use tilewright_ir::{
    AttrValue, Buffer, DataType, DeviceCall, Expr, ForKind, FuncAttrs, PrimFunc, Stmt, StmtKind, Var, sabotage,
};

use super::expr::quote;
use super::names::Names;
use super::{Dialect, Printer};

/// A device function that is called by the function being printed.
pub(super) struct DeviceFunction {
    name: String,
    /// The text behind the name.
    text: String,
}

impl Printer {
    /// Prints the call of a device function, and keeps the function for the end.
    pub(super) fn device_call(&mut self, call: DeviceCall<'_>, span: Option<tilewright_ir::Span>) {
        let params = call.passed();
        let text = self.device_function(&call, &params);
        let name = self.device_name(call.name, text);
        let mut args: Vec<String> = params.iter().map(|var| self.attr(&AttrValue::Var(var.clone()))).collect();
        if sabotage::on("printer-device-args-reversed") {
            args.reverse();
        }
        let line = match self.dialect {
            Dialect::Canonical => format!("T.call_packed({})", joined(&quote(&name), &args)),
            Dialect::Tvm0_16 => format!("Module.{name}({})", args.join(", ")),
            Dialect::Tvm0_27 => {
                let launch = launch(call.body);
                if launch.iter().any(|(_, extent)| !extent.vars().iter().all(|var| params.contains(var))) {
                    let what = format!("the launch of `{name}`, whose size depends on what it computes,");
                    self.refuse(span, &what, "state the number of threads in terms of what the host knows");
                }
                args.extend(launch.iter().map(|(_, extent)| self.expr(extent)));
                let tags: Vec<String> = launch.iter().map(|(tag, _)| quote(tag)).collect();
                let (args, tags) = (joined(&quote(&name), &args), tags.join(", "));
                format!("T.call_ffi_kernel({args}, launch_params=[{tags}], ret_ty=\"int32\")")
            }
        };
        self.line(&line);
    }

    /// Adds the text of a device function, and returns its name: another one if a different function, or one of the file, has it.
    fn device_name(&mut self, wanted: &str, text: String) -> String {
        let mut name = wanted.to_owned();
        for at in 1_usize.. {
            match self.devices.iter().find(|known| known.name == name) {
                Some(known) if known.text == text => return name,
                None if !self.taken.contains(&name) => break,
                Some(_) | None => name = format!("{wanted}_{at}"),
            }
        }
        self.taken.push(name.clone());
        self.devices.push(DeviceFunction { name: name.clone(), text });
        name
    }

    /// The text of a device function behind its name. It knows the names of its own parameters only.
    fn device_function(&mut self, call: &DeviceCall<'_>, params: &[Var]) -> String {
        let declared = self.declared_for(call);
        let declare =
            |body: Stmt, buffer: &Buffer| Stmt::new(StmtKind::DeclBuffer { buffer: buffer.clone(), body: body.into() });
        let body = declared.iter().rev().fold(call.body.clone(), declare);
        let func = PrimFunc {
            name: call.name.to_owned(),
            params: params.to_vec(),
            buffer_map: Vec::new(),
            attrs: FuncAttrs::default(),
            body,
        };
        let mut printer = Self {
            indent: self.indent_of_functions,
            dialect: self.dialect,
            names: Names::new(&func),
            ..Self::default()
        };
        let mut printed = Vec::new();
        for var in params {
            if var.dtype() == DataType::HANDLE {
                let buffer = declared.iter().find(|buffer| buffer.data == *var);
                let ty = buffer.map_or_else(String::new, |buffer| {
                    format!("({}, {})", quote(&buffer.dtype.to_string()), quote(self.dialect.scope(buffer.scope)))
                });
                let name =
                    printer.names.bind_as(var, &format!("{}_ptr", buffer.map_or(var.name(), |buffer| &buffer.name)));
                printer.names.point(var, &name);
                printed.push(format!("{name}: T.handle{ty}"));
            } else {
                printed.push(format!("{}: T.{}", printer.names.bind(var), var.dtype()));
            }
        }
        printer.text = format!("({}):\n", printed.join(", "));
        printer.indent += 1;
        printer.body(&func.body);
        self.faults.append(&mut printer.faults);
        printer.text
    }

    /// The buffers that a device function declares: those that it uses, and for memory that only views show, the one that owns it.
    fn declared_for(&self, call: &DeviceCall<'_>) -> Vec<Buffer> {
        let used = uses(call.body);
        let mut declared = used.buffers;
        for data in &used.data {
            if !declared.iter().any(|buffer| buffer.data == *data) {
                declared.extend(self.names.owner(data));
            }
        }
        declared
    }

    /// Prints the device functions that were called.
    pub(super) fn device_functions(&mut self) {
        for DeviceFunction { name, text } in std::mem::take(&mut self.devices) {
            self.text.push('\n');
            self.line(self.dialect.decorator());
            let head = format!("{}def {name}", "    ".repeat(self.indent));
            self.text.push_str(&head);
            self.text.push_str(&text);
        }
    }
}

/// The axes of a launch with their extents, outermost first.
fn launch(body: &Stmt) -> Vec<(String, Expr)> {
    let mut found: Vec<(String, Expr)> = Vec::new();
    body.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind
            && let ForKind::ThreadBinding(tag) = inner.kind
            && !found.iter().any(|(known, _)| *known == tag.to_string())
        {
            found.push((tag.to_string(), inner.extent.clone()));
        }
    });
    found
}

/// Arguments behind a first one.
fn joined(first: &str, rest: &[String]) -> String {
    std::iter::once(first).chain(rest.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
}

//! The report as text: a table per group, A/A cells, answers, machine, what is missing.

use std::fmt::Write as _;

use bench::published::Published;
use bench::report::{CellReport, Kind, Report, Unmeasured, VariantReport, Verdict};
use bench::stats;
use comfy_table::{CellAlignment, LineStyle, Table, presets};

const LEGEND: &str = "Each variant: median, then its ratio to the baseline as the median over paired rounds with a 95 % interval\n\
    (+ better, - worse, = no difference seen, ? too noisy to tell; ~ noisy cell, * fewer rounds than the profile asks for).\n\
    Columns marked \"theirs\" are figures of others, an idea's author or another library, not measured here.\n";

/// The whole report; `questions` are the groups' names and questions.
pub(crate) fn render(report: &Report, questions: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, question) in questions {
        let cells: Vec<&CellReport> = of_kind(report, Kind::Cell)
            .filter(|c| c.group == *name)
            .collect();
        if !cells.is_empty() {
            let unit = one_unit(&cells).map_or_else(String::new, |unit| format!(" ({unit})"));
            let _ = write!(
                text,
                "\n{name}: {question}{unit}\n{}\n",
                group_table(&cells)
            );
        }
    }
    if of_kind(report, Kind::Cell).next().is_some() {
        let _ = write!(text, "\n{LEGEND}");
    }
    text += &aa_section(report);
    for answer in &report.answers {
        let _ = write!(text, "\n{}\n", answer.sentence);
    }
    text += &machine_lines(report);
    text += &missing("skipped", &report.skipped);
    text += &missing("FAILED", &report.failed);
    text
}

fn of_kind(report: &Report, kind: Kind) -> impl Iterator<Item = &CellReport> {
    report.cells.iter().filter(move |cell| cell.kind == kind)
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.style_mut().row_separator = LineStyle::none();
    table
}

/// The unit, if it is the same in all cells: then it need not stand in every row.
fn one_unit<'a>(cells: &[&'a CellReport]) -> Option<&'a str> {
    let unit = cells.first()?.unit.as_str();
    cells.iter().all(|cell| cell.unit == unit).then_some(unit)
}

fn group_table(cells: &[&CellReport]) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for variant in cells.iter().flat_map(|cell| &cell.variants) {
        if !names.contains(&variant.name.as_str()) {
            names.push(&variant.name);
        }
    }
    let theirs = cells.iter().any(|cell| cell.theirs.is_some());
    let own_units = one_unit(cells).is_none();
    let mut header: Vec<String> = vec!["cell".into(), "rounds".into()];
    if own_units {
        header.push("unit".into());
    }
    header.extend(names.iter().map(|name| (*name).to_owned()));
    if theirs {
        header.push("theirs".into());
    }
    let mut table = new_table();
    table.set_header(header);
    for cell in cells {
        let mut row = vec![short_id(cell), rounds(cell)];
        if own_units {
            row.push(cell.unit.clone());
        }
        row.extend(
            names
                .iter()
                .map(|name| cell.variant(name).map_or_else(|| "–".to_owned(), figure)),
        );
        if theirs {
            row.push(cell.theirs.as_ref().map_or_else(String::new, published));
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A published pair of figures; the column's head says that it is theirs.
fn published(figures: &Published) -> String {
    // As published, no digit less.
    let exact = |value: f64| {
        if value.fract() == 0.0 {
            format!("{value}")
        } else {
            format!("{value:.2}")
        }
    };
    let (before, after) = (exact(figures.before), exact(figures.after));
    format!(
        "{before} → {after} {}\n{} ×{:.2}",
        figures.unit,
        figures.variant,
        figures.ratio()
    )
}

/// The id without the group.
fn short_id(cell: &CellReport) -> String {
    cell.id
        .strip_prefix(&format!("{}/", cell.group))
        .unwrap_or(&cell.id)
        .to_owned()
}

fn rounds(cell: &CellReport) -> String {
    let marks = [(cell.partial, "*"), (cell.noisy, "~")];
    let marks: String = marks
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, mark)| *mark)
        .collect();
    format!("{}{marks}", cell.rounds)
}

fn figure(variant: &VariantReport) -> String {
    let [lo, hi] = variant.ratio_ci95;
    let mark = match variant.verdict {
        Verdict::Baseline => return format!("{}\nbaseline", digits(variant.median)),
        Verdict::Faster => '+',
        Verdict::Slower => '-',
        Verdict::NoDifference => '=',
        Verdict::TooNoisy => '?',
    };
    format!(
        "{}\n×{} [{}, {}] {mark}",
        digits(variant.median),
        digits(variant.ratio),
        digits(lo),
        digits(hi)
    )
}

/// Three digits that count, two behind the point at most unless the number is small.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn aa_section(report: &Report) -> String {
    let cells: Vec<&CellReport> = of_kind(report, Kind::Aa).collect();
    if cells.is_empty() {
        return String::new();
    }
    let mut table = new_table();
    table.set_header(["A/A cell", "rounds", "ratio", "95 % interval", "excludes 1"]);
    for cell in &cells {
        let Some(copy) = cell.variants.last() else {
            continue;
        };
        let [lo, hi] = copy.ratio_ci95;
        let excludes = if cell.excludes_one() { "yes" } else { "no" };
        let id = cell.id.trim_end_matches("/aa");
        table.add_row([
            format!("{id}: {} against itself", cell.baseline),
            rounds(cell),
            format!("{:.3}", copy.ratio),
            format!("[{lo:.3}, {hi:.3}]"),
            excludes.to_owned(),
        ]);
    }
    let out = cells.iter().filter(|cell| cell.excludes_one()).count();
    let allowed = stats::chance_allows(cells.len());
    let verdict = if out <= allowed {
        "as it should be"
    } else {
        "MORE THAN CHANCE: do not trust this run"
    };
    format!(
        "\nA/A, a variant against itself, must come out as 1:\n{table}\n{out} of {} intervals exclude 1, chance allows up to {allowed}: {verdict}\n",
        cells.len()
    )
}

fn machine_lines(report: &Report) -> String {
    let machine = &report.machine;
    let cells: Vec<&CellReport> = of_kind(report, Kind::Cell).collect();
    let least = cells.iter().map(|c| c.rounds).min().unwrap_or(0);
    let most = cells.iter().map(|c| c.rounds).max().unwrap_or(0);
    let disturbed: usize = cells.iter().map(|c| c.disturbed).sum();
    let noisy = cells.iter().filter(|c| c.noisy).count();
    let partial = cells.iter().filter(|c| c.partial).count();
    let pings: Vec<f64> = cells
        .iter()
        .flat_map(|c| {
            c.variants
                .iter()
                .filter_map(|v| v.counts.get("ping_ns").copied())
        })
        .collect();
    let second = match (
        pings.iter().copied().reduce(f64::min),
        pings.iter().copied().reduce(f64::max),
    ) {
        (Some(least), Some(most)) => format!(
            "The second CPU was {least:.0} to {most:.0} ns away (hand over a packet, see it freed): compare cells of \
             two cores between runs only where this agrees.\n"
        ),
        _ => String::new(),
    };
    format!(
        "\n{second}{}, {} CPUs, Linux {}, pages: {}, TSC {:.3} GHz, {}\n\
         {} profile, seed {}: {} cells, {least} to {most} rounds per cell, {disturbed} preempted rounds thrown away, \
         {noisy} noisy cells, {partial} with too few rounds, {} skipped, {} failed\n",
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.huge_pages,
        machine.tsc_hz / 1e9,
        machine.rustc,
        report.profile,
        report.seed,
        cells.len(),
        report.skipped.len(),
        report.failed.len(),
    )
}

/// Cells without numbers, those of one reason in one line.
fn missing(word: &str, cells: &[Unmeasured]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for cell in cells {
        if !reasons.contains(&cell.reason.as_str()) {
            reasons.push(&cell.reason);
        }
    }
    let mut text = String::new();
    for reason in reasons {
        let ids: Vec<&str> = cells
            .iter()
            .filter(|c| c.reason == reason)
            .map(|c| c.id.as_str())
            .collect();
        let _ = writeln!(text, "{word}, {reason}: {}", ids.join(", "));
    }
    text
}

#[cfg(test)]
mod tests;

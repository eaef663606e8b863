//! Tells the report which compiler built it, and links DPDK where that feature asks for it.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc)
        .arg("-V")
        .output()
        .ok()
        .and_then(|out| String::from_utf8(out.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned());
    println!("cargo::rustc-env=BENCH_RUSTC={version}");
    #[cfg(feature = "dpdk")]
    if let Err(reason) = dpdk::link() {
        println!("cargo::error=the feature `dpdk` of `bench`: {reason}");
    }
}

/// The shim around DPDK, which is linked statically: what it needs need not be found at run time.
#[cfg(feature = "dpdk")]
mod dpdk {
    use std::env;
    use std::path::Path;
    use std::process::Command;

    const SHIM: &str = "src/cases/alloc/peer/shim.c";
    /// A folder into which the packages were unpacked.
    const ROOT: &str = "DPDK_ROOT";
    const PKG_CONFIG_FOLDER: &str = "usr/lib/x86_64-linux-gnu/pkgconfig";
    /// Its part without drivers and what these need.
    const PACKAGE: &str = "libdpdk-libs";
    const GET_IT: &str = "DPDK is not found by pkg-config. Install it (apt-get install libdpdk-dev), or unpack \
        libdpdk-dev, libnuma-dev, libbsd-dev and libmd-dev (apt-get download, dpkg -x) into one folder and name it in DPDK_ROOT";

    const LIBRARIES: [&str; 6] = [
        "rte_mbuf",
        "rte_mempool",
        "rte_ring",
        "rte_eal",
        "rte_telemetry",
        "rte_kvargs",
    ];
    const FROM_ELSEWHERE: [&str; 3] = ["numa", "bsd", "md"];

    pub fn link() -> Result<(), String> {
        println!("cargo::rerun-if-env-changed={ROOT}");
        println!("cargo::rerun-if-changed={SHIM}");
        println!("cargo::rustc-env=DPDK_VERSION=unknown");
        let version = pkg_config("--modversion")?;
        println!("cargo::rustc-env=DPDK_VERSION={}", version.trim());

        let mut shim = cc::Build::new();
        shim.file(SHIM)
            .opt_level(3)
            .warnings(false)
            .force_frame_pointer(false);
        for flag in pkg_config("--cflags")?.split_whitespace() {
            shim.flag(flag);
        }
        if let Some(root) = env::var_os(ROOT) {
            // What its headers include of other packages.
            shim.include(Path::new(&root).join("usr/include"));
        }
        // The package's flags name the oldest processor that it runs on; the last one counts.
        shim.flag("-march=native");
        shim.try_compile("bench_dpdk").map_err(|e| e.to_string())?;

        let folders = pkg_config("--libs-only-L")?;
        let folders: Vec<&str> = folders
            .split_whitespace()
            .filter_map(|flag| flag.strip_prefix("-L"))
            .collect();
        for folder in &folders {
            println!("cargo::rustc-link-search=native={folder}");
        }
        // Nothing refers to this one: it registers itself when it is loaded.
        println!("cargo::rustc-link-lib=static:+whole-archive=rte_mempool_ring");
        for library in LIBRARIES {
            println!("cargo::rustc-link-lib=static={library}");
        }
        for library in FROM_ELSEWHERE {
            let archive = format!("lib{library}.a");
            let there = folders.iter().any(|f| Path::new(f).join(&archive).exists());
            let kind = if there { "static" } else { "dylib" };
            println!("cargo::rustc-link-lib={kind}={library}");
        }
        println!("cargo::rustc-link-lib=dylib=m");
        Ok(())
    }

    fn pkg_config(argument: &str) -> Result<String, String> {
        let mut command = Command::new("pkg-config");
        command
            .args([argument, PACKAGE])
            .env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
        if let Some(root) = env::var_os(ROOT) {
            let folder = Path::new(&root).join(PKG_CONFIG_FOLDER);
            command.env("PKG_CONFIG_SYSROOT_DIR", &root);
            command.env("PKG_CONFIG_LIBDIR", folder);
        }
        match command.output() {
            Ok(out) if out.status.success() => {
                Ok(String::from_utf8_lossy(&out.stdout).into_owned())
            }
            Ok(out) => {
                let said = String::from_utf8_lossy(&out.stderr).replace('\n', " ");
                Err(format!("{GET_IT}. It said: {said}"))
            }
            Err(error) => Err(format!("{GET_IT}. pkg-config cannot be run: {error}")),
        }
    }
}

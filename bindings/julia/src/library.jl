# Where libtd is, and whether it is one that this package can call.

using Libdl

"""
    library_path()

The file that libtd was loaded from.
"""
library_path() = loaded_path[]
const loaded_path = Ref("")

# The preference "library" of this package, as Preferences.jl writes it: the package itself is not needed to read one
# line, and is not among the standard libraries.
function preferred_library()
    for place in Base.load_path()
        folder = isdir(place) ? place : dirname(place)
        for file in ("LocalPreferences.toml", "JuliaLocalPreferences.toml")
            path = joinpath(folder, file)
            isfile(path) || continue
            inside = false
            for line in eachline(path)
                section = match(r"^\s*\[(.*)\]\s*$", line)
                section === nothing || (inside = strip(section.captures[1], [' ', '"']) == "TD")
                entry = match(r"^\s*library\s*=\s*[\"'](.*)[\"']\s*$", line)
                inside && entry !== nothing && return String(entry.captures[1])
            end
        end
    end
    return nothing
end

# Beside this package where `cmake --install` put both: <prefix>/share/td/julia/src and <prefix>/lib.
function installed_libraries()
    prefix = normpath(joinpath(@__DIR__, "..", "..", "..", ".."))
    lib = joinpath(prefix, "lib")
    folders = [lib, joinpath(prefix, "lib64")]
    isdir(lib) && append!(folders, filter(isdir, readdir(lib; join=true)))
    return [joinpath(f, "libtd.$dlext") for f in folders if isfile(joinpath(f, "libtd.$dlext"))]
end

# Without RTLD_DEEPBIND, which is among Julia's defaults: where Julia itself uses a shared libunwind, libtd would end an
# exception through another unwinder than the one that libstdc++ has begun it with.
const library_flags = RTLD_LAZY | RTLD_LOCAL

function load_library()
    chosen = get(ENV, "TD_LIBRARY", "") # empty is not set
    isempty(chosen) && (chosen = preferred_library())
    system = ["libtd.so.$(LibTD.TD_ABI_VERSION)", "libtd"]
    candidates = chosen === nothing ? vcat(installed_libraries(), system) : [chosen]
    reasons = String[]
    for path in candidates
        library = try
            dlopen(path, library_flags)
        catch e
            push!(reasons, sprint(showerror, e))
            continue
        end
        return check_library(library)
    end
    error("""
        libtd was not found, or does not load. Install td, or say where its library is, in one of these ways:
          the environment variable TD_LIBRARY, as in  TD_LIBRARY=/usr/local/lib/libtd.so julia
          the file LocalPreferences.toml beside your project's Project.toml, with the lines
              [TD]
              library = "/usr/local/lib/libtd.so"
        Tried:
          """ * join(reasons, "\n  "))
end

function check_library(library)
    version = dlsym(library, :td_abi_version; throw_error=false)
    path = dlpath(library)
    version === nothing && error("$path is not libtd: it has no td_abi_version")
    abi = ccall(version, Int32, ())
    abi == LibTD.TD_ABI_VERSION || error("$path has ABI version $abi; this package was written for version " *
                                         "$(LibTD.TD_ABI_VERSION). Use the package that came with the library.")
    LibTD.bind!(library)
    loaded_path[] = path
    return nothing
end

"""
    library_version()

The version of the libtd that is loaded.
"""
function library_version()
    v = Int(LibTD.td_version())
    return VersionNumber(v ÷ 10000, v ÷ 100 % 100, v % 100)
end

"""
    has_feature(name)

Whether the loaded library has a feature: "reference", "cpu", "openmp", "cuda".
"""
has_feature(name::AbstractString) = LibTD.td_has_feature(name) == 1

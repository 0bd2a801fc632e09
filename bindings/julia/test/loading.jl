# How libtd is found, each way in a program of its own.
function loaded(environment, code="println(TD.library_path())"; project=Base.active_project(), file=nothing)
    command = `$(Base.julia_cmd()) --startup-file=no --project=$project -e "using TD; $code"`
    out = IOBuffer()
    p = run(pipeline(setenv(command, merge(ENV, environment)); stdout=out, stderr=out); wait=false)
    wait(p)
    return success(p), String(take!(out))
end

@testset "TD_LIBRARY" begin
    ok, text = loaded(Dict("TD_LIBRARY" => TD.library_path()))
    @test ok && realpath(strip(text)) == realpath(TD.library_path())
    ok, text = loaded(Dict("TD_LIBRARY" => "/nowhere/libtd.so"))
    @test !ok && occursin("/nowhere/libtd.so", text) && occursin("LocalPreferences.toml", text)
    @test occursin("TD_LIBRARY=", text)
end

@testset "TD_LIBRARY empty" begin # is TD_LIBRARY not set: the next way is tried
    code = "println(TD.LibTD.TD_ABI_VERSION)"
    with_empty = loaded(Dict("TD_LIBRARY" => ""), code)
    without = withenv(() -> loaded(Dict{String,String}(), code), "TD_LIBRARY" => nothing)
    @test with_empty[1] == without[1]
    @test !occursin("could not load library \"\"", with_empty[2])
    mktempdir() do folder
        write(joinpath(folder, "Project.toml"), "")
        write(joinpath(folder, "LocalPreferences.toml"), "[TD]\nlibrary = \"$(TD.library_path())\"\n")
        path = join((folder, dirname(Base.active_project()), "@stdlib"), ':')
        ok, text = loaded(Dict("JULIA_LOAD_PATH" => path, "TD_LIBRARY" => ""); project=folder)
        @test ok && realpath(strip(text)) == realpath(TD.library_path())
    end
end

@testset "another ABI" begin
    fake = get(ENV, "TD_FAKE_LIBRARY", nothing)
    if fake !== nothing
        ok, text = loaded(Dict("TD_LIBRARY" => fake))
        @test !ok && occursin("has ABI version 999", text)
    end
    libjulia = first(filter(l -> occursin("libjulia", l), TD.Libdl.dllist()))
    ok, text = loaded(Dict("TD_LIBRARY" => libjulia))
    @test !ok && occursin("is not libtd", text)
end

@testset "preference" begin
    mktempdir() do folder
        write(joinpath(folder, "Project.toml"), "")
        write(joinpath(folder, "LocalPreferences.toml"),
              "[Other]\nlibrary = \"/elsewhere\"\n\n[TD]\nlibrary = \"$(TD.library_path())\"\n")
        path = join((folder, dirname(Base.active_project()), "@stdlib"), ':')
        environment = Dict("JULIA_LOAD_PATH" => path)
        ok, text = withenv("TD_LIBRARY" => nothing) do
            loaded(environment; project=folder)
        end
        @test ok && realpath(strip(text)) == realpath(TD.library_path())
    end
end

@test TD.library_version() >= v"0.1"
@test TD.has_feature("cpu") && !TD.has_feature("teleport")

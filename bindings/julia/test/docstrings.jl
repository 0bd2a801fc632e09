# Each example of a docstring runs; where its last value is true or false, it must be true.
function examples()
    found = Tuple{Symbol,String}[]
    for (binding, documents) in Base.Docs.meta(TD), text in values(documents.docs)
        content = join(filter(t -> t isa AbstractString, collect(text.text)))
        for block in eachmatch(r"```julia\n(.*?)```"s, content)
            push!(found, (binding.var, String(block.captures[1])))
        end
    end
    return found
end

@test length(examples()) >= 10
@testset "$name" for (name, code) in examples()
    place = Module()
    Core.eval(place, :(using TD, LinearAlgebra))
    result = include_string(place, code)
    result isa Bool && @test result
end

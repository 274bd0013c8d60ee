# Sourced by Scripts/lib/faults/run.

# Scripts/documents
begin
plant README.md '[index](Documentation/README.md) [gone](Gone.md) [none](#none) [one](Documentation/A.md#getting-json-fast)\n'
plant Documentation/README.md '[A](A.md) [the section](../README.md#title)\n'
plant Documentation/A.md '# One\n## Getting JSON, fast\n```sh\n# comment\n```\n### `Cache`-Control\n[b](#cache-control) [c](#comment) `Gone.swift` `There.swift`\n'
plant Documentation/B.md '# Not in the index\n'
plant Documentation/HTTPCaching.md '| § 3 | a | `there` |\n| § 4 | b | `gone` |\n| § 5 | c | not here: d |\n| § 6 | d | |\n'
plant Documentation/Generations/From-3.md '| sample | test |\n|---|---|\n| a | `sample02_b` |\n| b | `sample01_a` |\n| c | `sample03_c` |\n'
plant Tests/HTTPWireTests/Caching/ARequirementTests.swift '@Test("a")\nfunc there() {}\n@Test func unnamed() {}\n'
plant Tests/Generations/V3Samples/Making/A.swift '@Test func sample01_a() {}\n@Test func sample02_b() {}\n@Test func sample04_d() {}\n'
plant Sources/X/There.swift ''
plant CONTRIBUTING.md '`X/There.swift` `../Sources/X` `X/Gone.swift`\n```sh\napt-get install libcurl4-openssl-dev \\\n  libssl-dev\n```\n'
plant Scripts/install 'build="libcurl4-openssl-dev zlib1g-dev pkgconf"\n'
sorted() { "$@" | LC_ALL=C sort; }
prints 1 sorted Scripts/documents "$tree" <<'END'
CONTRIBUTING.md:1: there is no X/Gone.swift
CONTRIBUTING.md:4: the packages are not those of Scripts/install: libcurl4-openssl-dev zlib1g-dev
Documentation/A.md:7: there is no file Gone.swift in Sources or Tests
Documentation/A.md:7: there is no section #comment
Documentation/B.md:1: the document is not in Documentation/README.md
Documentation/Generations/From-3.md:1: the document is not in Documentation/README.md
Documentation/Generations/From-3.md:4: the tests are not in their order
Documentation/Generations/From-3.md:5: there is no test sample03_c
Documentation/HTTPCaching.md:1: the document is not in Documentation/README.md
Documentation/HTTPCaching.md:2: there is no test gone
Documentation/HTTPCaching.md:4: the row names no test
Documentation/README.md:1: there is no section ../README.md#title
README.md:1: there is no Gone.md
README.md:1: there is no section #none
Tests/Generations/V3Samples/Making/A.swift:3: Documentation/Generations/From-3.md does not name the test sample04_d
Tests/HTTPWireTests/Caching/ARequirementTests.swift:3: Documentation/HTTPCaching.md does not name the test unnamed
END

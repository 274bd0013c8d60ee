# Sourced by Scripts/lib/faults/run.

# Scripts/samples: errors of the compiler have the file and the line of the document.
compiled() {
  Scripts/samples Samples "$tree/out" "$tree"
  sed -i '/^import /d' "$tree/out"/*.swift
  swiftc -typecheck -continue-building-after-errors "$tree/out"/*.swift
}
begin
plant README.md <<'END'
# Title

```swift
let count: Int = 1
```

<!-- swift: func sum(a: Int) -> Int { … } -->
```swift
let b = a
return b + "c"
```
END
plant Sources/Alamofire/Kind.swift '/// A kind.\n///\n/// ```swift\n/// let kind: Kind = 1\n/// ```\n'
reports 1 "README.md:10:12: error:" compiled
reports 1 "Sources/Alamofire/Kind.swift:4:11: error:" compiled
begin
plant README.md '```swift\nlet open = 1\n'
reports 1 "README.md:1: the sample has no end" Scripts/samples Samples "$tree/out" "$tree"
plant README.md '# Title\n<!-- swift: let a = 1 -->\n'
reports 1 "samples: there are none for the target 'Samples'" Scripts/samples Samples "$tree/out" "$tree"
plant README.md '# Title\n<!-- swift: let a = 1 -->\n```swift\nlet b = a\n```\n<!-- swift: let c = 1 -->\n'
reports 1 "README.md:6: the hidden code has no end, or no sample after it" Scripts/samples Samples "$tree/out" "$tree"

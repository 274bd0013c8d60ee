// swift-tools-version:6.3
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .unsafeFlags(["-sanitize=fuzzer,address"]),
]

// What parses the bytes of others, built so that libFuzzer sees which ways they take. The sources are those of the
// library, found through links: what is fuzzed is not public. Scripts/fuzz runs it.
let package = Package(
  name: "fuzz",
  targets: [
    .systemLibrary(name: "CCurl"),
    .target(name: "COpenSSL"),
    .systemLibrary(name: "CZlib"),
    .systemLibrary(name: "CBrotli"),
    .systemLibrary(name: "CZstd"),
    .systemLibrary(name: "CPSL"),
    .systemLibrary(name: "CNetlink"),
    .target(name: "HTTPWire", swiftSettings: settings),
    .target(
      name: "HTTPEngine",
      dependencies: ["HTTPWire", "CCurl", "COpenSSL", "CZlib", "CBrotli", "CZstd", "CPSL", "CNetlink"],
      swiftSettings: settings),
    .target(name: "CFuzzer"),
    .executableTarget(
      name: "fuzz", dependencies: ["HTTPWire", "HTTPEngine", "CFuzzer"], swiftSettings: settings,
      // The usual linker gives up on what the fuzzer adds.
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]),
  ]
)

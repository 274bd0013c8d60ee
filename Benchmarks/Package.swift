// swift-tools-version:6.3
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

// `Scripts/bench` builds and runs this; README.md says how to read what it prints.
let package = Package(
  name: "benchmarks",
  dependencies: [.package(name: "alamofire-linux", path: "..")],
  targets: [
    .target(name: "Scorecard", swiftSettings: settings),
    .executableTarget(name: "bench", dependencies: ["Scorecard"], swiftSettings: settings),
    .executableTarget(
      name: "bench-client",
      dependencies: ["Scorecard", .product(name: "Alamofire", package: "alamofire-linux")],
      swiftSettings: settings),
  ]
)

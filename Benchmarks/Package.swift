// swift-tools-version:6.3
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

// `Scripts/bench` and `Scripts/path` build and run this package. README.md explains what they print.
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
    .executableTarget(
      name: "thumbnails", dependencies: [.product(name: "AlamofireImage", package: "alamofire-linux")],
      swiftSettings: settings),
    .executableTarget(
      name: "path",
      dependencies: [
        .product(name: "Alamofire", package: "alamofire-linux"),
        .product(name: "HTTPTestServer", package: "alamofire-linux"),
      ],
      swiftSettings: settings),
  ]
)

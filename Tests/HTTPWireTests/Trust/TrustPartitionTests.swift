import FoundationEssentials
import HTTPWire
import Testing

/// One after the other, because one of the tests makes more partitions than are kept.
@Suite("Partitions of connections", .serialized) struct TrustPartitionTests {
  private static func partition(_ change: (inout TransportOptions) -> Void = { _ in }) -> Int {
    var options = TransportOptions()
    change(&options)
    return ConnectionProfile(options: options).partition
  }

  @Test("Options that change trust or the client certificate have a separate partition")
  func distinct() {
    let (one, two) = (Data([1]), Data([2]))
    func identity(_ certificate: Data) -> ClientIdentity {
      ClientIdentity(certificates: [certificate], subject: "CN=Ada", privateKey: one)
    }
    let changes: [(inout TransportOptions) -> Void] = [
      { _ in }, { $0.trustStore = .pem(one) }, { $0.trustStore = .file("/a.pem") },
      { $0.certificateRevocationLists = [one] }, { $0.certificateRevocationLists = [one, two] },
      { $0.clientIdentity = identity(one) }, { $0.clientIdentity = identity(two) },
    ]
    let partitions = changes.map { Self.partition($0) }
    #expect(Set(partitions).count == changes.count)
    #expect(changes.map { Self.partition($0) } == partitions)
  }

  @Test("Trust stores whose paths are equal texts but not equal bytes have two partitions")
  func paths() {
    let composed = Self.partition { $0.trustStore = .file("/jos\u{E9}.pem") }
    #expect(composed != Self.partition { $0.trustStore = .file("/jose\u{301}.pem") })
    #expect(composed == Self.partition { $0.trustStore = .file("/jos\u{E9}.pem") })
  }

  @Test("An identity is known by its certificates, so that no key is kept")
  func identities() {
    let partitions = [Data([1]), Data([2])].map { key in
      Self.partition {
        $0.clientIdentity = ClientIdentity(certificates: [Data([9])], subject: "CN=Eve", privateKey: key)
      }
    }
    #expect(Set(partitions).count == 1)
  }

  @Test("The default options keep their partition, however many others there are") func usual() {
    let before = Self.partition()
    for number in 0..<300 { _ = Self.partition { $0.trustStore = .pem(Data("\(number)".utf8)) } }
    #expect(Self.partition() == before)
  }

  @Test("Other options share a partition")
  func shared() {
    #expect(Self.partition { $0.bodySizeLimit = 5 } == Self.partition())
    #expect(Self.partition { $0.minimumTLSVersion = .tls13 } == Self.partition())
  }
}

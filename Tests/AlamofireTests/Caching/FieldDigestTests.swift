import HTTPSystem
import HTTPWire
import Testing

@testable import Alamofire

// Caches on disk contain these digests, so they must not change.
@Suite("Digests of request fields") struct FieldDigestTests {
  @Test(
    "The digest of a field is the SHA-256 of its value",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
      (
        String(repeating: "a", count: 1_000),
        "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"
      ),
      ("Bearer secret-token", "86e774bff90b0fe5f8ec00ffd9e579c653705ca16285d09d992ae2bfb58bc308"),
      ("gzip ,\t br", "27eca4223ac88c715c105f08fbf972d2fe52d5c7fa5fc38f464438e928aac11d"),
    ])
  func digest(value: String, digest: String) {
    var digests = FieldDigests(of: [HTTPHeader(name: "X-Field", value: value)])
    #expect(digests["x-field"] == digest)
    #expect(digests["other"] == nil)
  }

  @Test("A selection lists its fields in order, and its hash distinguishes variants")
  func selection() {
    let request = [
      HTTPHeader(name: "Authorization", value: "Bearer secret-token"),
      HTTPHeader(name: "Accept-Encoding", value: "gzip, br"),
    ]
    let head = ResponseHead(
      status: 200, fields: [HTTPHeader(name: "Vary", value: "X-None, Accept-Encoding")])
    let selection = Selection(head, CacheControl(head), request: FieldDigests(of: request))
    #expect(selection.fields.map(\.name) == ["accept-encoding", "authorization", "x-none"])
    #expect(
      selection.fields.map(\.digest) == [
        "27eca4223ac88c715c105f08fbf972d2fe52d5c7fa5fc38f464438e928aac11d",
        "86e774bff90b0fe5f8ec00ffd9e579c653705ca16285d09d992ae2bfb58bc308", nil,
      ])
    #expect(selection.hash == 2_356_259_998)
  }
}

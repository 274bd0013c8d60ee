import Foundation
import HTTPWire

// What one attempt keeps of the challenges on its way.
extension Journey {
  var trail: AuthenticationTrail { authentication?.trail ?? AuthenticationTrail() }

  /// Whether there is anything to look for before a hop is sent: next to nothing when there is not.
  var mayKnowCredentials: Bool {
    !core.session.credentials.isEmpty || request.profile.options.preemptiveBasicAuthentication
      || request.profile.options.netrcFile != nil
  }

  /// The next hop brings what lets it in.
  func brings(_ proof: AuthenticationProof) {
    request = request.bringing(proof)
    var trail = trail
    trail.brings(proof)
    authentication = Authentication(trail: trail, netrc: authentication?.netrc)
  }

  /// A response has come: what the request brought was good, or it was not.
  @inline(never)
  func judged(by head: ResponseHead) {
    guard let proof = trail.proof else { return }
    let memory = core.session.credentials
    guard head.status == 401 else {
      let info = AuthenticationInfo(head.block.values(of: "Authentication-Info"))
      memory.accepted(
        proof, origin: request.origin, target: ProtectionDomain.target(of: request.url),
        nextNonce: info.nextNonce)
      return
    }
    // A nonce that is too old says nothing about the credential.
    let offers = core.offers(head, to: request, home: home, authentication)
    if !offers.contains(where: { trail.mayAnswer($0, with: proof.credential) }) {
      memory.refused(proof, origin: request.origin)
    }
  }

  /// The next hop goes elsewhere: what was made for the one before stays behind.
  func leavesCredentials() {
    if request.origin != home { hasLeftHome = true }
    guard let authentication, let proof = authentication.trail.proof else { return }
    var trail = authentication.trail
    trail.moved()
    self.authentication = Authentication(trail: trail, netrc: authentication.netrc)
    guard let field = proof.field, request.authorization == field else { return }
    request = request.changing { $0.fields.removeAll { FieldName.equal($0.name, "Authorization") } }
  }
}

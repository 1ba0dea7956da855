package org.apache.hadoop.hive.metastore;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.alias.CredentialProvider;
import org.apache.hadoop.security.alias.CredentialProviderFactory;

/**
 * Reads credentials from a JSON object of names and values: {@code hadoop.security.credential.provider.path = json:/path}.
 *
 * <p>Hadoop's own provider of files is a keystore whose password is the word "none", and only Java writes it. Here the
 * mode of the file is what protects it there, too, and the kit can compare it.
 */
public final class JsonCredentials extends CredentialProviderFactory {
  private static final TypeReference<Map<String, String>> NAMES_AND_VALUES = new TypeReference<>() {};
  private static final String SCHEME = "json";

  @Override
  public CredentialProvider createProvider(URI place, Configuration conf) throws IOException {
    if (!SCHEME.equals(place.getScheme())) {
      return null; // another factory's
    }
    return new ReadOnly(new ObjectMapper().readValue(Path.of(place.getPath()).toFile(), NAMES_AND_VALUES));
  }

  private static final class ReadOnly extends CredentialProvider {
    private final Map<String, String> credentials;

    ReadOnly(Map<String, String> credentials) {
      this.credentials = credentials;
    }

    @Override
    public CredentialEntry getCredentialEntry(String alias) {
      String value = credentials.get(alias);
      return value == null ? null : new CredentialEntry(alias, value.toCharArray()) {};
    }

    @Override
    public List<String> getAliases() {
      return List.copyOf(credentials.keySet());
    }

    @Override
    public CredentialEntry createCredentialEntry(String alias, char[] value) throws IOException {
      throw readOnly();
    }

    @Override
    public void deleteCredentialEntry(String alias) throws IOException {
      throw readOnly();
    }

    @Override
    public void flush() {}

    private static IOException readOnly() {
      return new IOException("this file of credentials is written by the deployment alone");
    }
  }
}

# What serves a commit of the catalog's history.
ARG PARENT
FROM ${PARENT}
ADD catalog.tar /opt/catalog/current/
COPY history /opt/catalog/module/
# Compiled here: the container may write nothing, and would need more memory for that than for its work.
RUN PYTHONPYCACHEPREFIX=/var/lib/lakehouse/catalog/compiled python3 -m compileall -q /opt/catalog
RUN set -eu; \
    ln -s /config/etc/lakehouse-catalog /etc/lakehouse-catalog; \
    ln -s /config/usr/local/sbin/lakehouse-catalog /usr/local/sbin/lakehouse-catalog
COPY kit /
USER nobody
